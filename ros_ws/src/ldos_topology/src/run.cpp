// Copyright (c) 2026 The pytest-ldos authors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy
// of this software and associated documentation files (the "Software"), to deal
// in the Software without restriction, including without limitation the rights
// to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
// copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in
// all copies or substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
// IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
// FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL
// THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
// LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN
// THE SOFTWARE.

#include "ldos_topology/run.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <rclcpp/rclcpp.hpp>

#include "ldos_topology/declared_node.hpp"
#include "ldos_topology/resources.hpp"
#include "ldos_topology/samples.hpp"

namespace ldos_topology
{
namespace
{

using nlohmann::json;

constexpr std::int64_t ns_per_ms = 1'000'000;
constexpr std::int64_t ns_per_s = 1'000 * ns_per_ms;
/// Time between two checks of an awaited condition.
constexpr std::int64_t look_period_ns = 10 * ns_per_ms;
/// Time limit for messages in transit.
constexpr std::int64_t drain_limit_ns = ns_per_s;

void say(const json & report)
{
  std::cout << report.dump() << '\n' << std::flush;
}

/// Lines of standard input, with a time limit for waiting.
class Input
{
public:
  /// The next line; nothing after the time limit.
  std::optional<std::string> next(std::int64_t deadline_ns)
  {
    while (true) {
      const auto end = text_.find('\n');
      if (end != std::string::npos) {
        auto line = text_.substr(0, end);
        text_.erase(0, end + 1);
        return line;
      }
      if (!await(deadline_ns)) {
        return std::nullopt;
      }
      read_some();
    }
  }

  /// The next line, without a time limit.
  std::string next()
  {
    while (true) {
      if (auto line = next(monotonic_ns() + ns_per_s)) {
        return *std::move(line);
      }
    }
  }

private:
  static bool await(std::int64_t deadline_ns)
  {
    const auto left_ns = std::max<std::int64_t>(0, deadline_ns - monotonic_ns());
    pollfd input{STDIN_FILENO, POLLIN, 0};
    timespec patience{};
    patience.tv_sec = left_ns / ns_per_s;
    patience.tv_nsec = left_ns % ns_per_s;
    return ppoll(&input, 1, &patience, nullptr) > 0;
  }

  void read_some()
  {
    std::array<char, 4096> piece{};
    const auto size = read(STDIN_FILENO, piece.data(), piece.size());
    if (size <= 0) {
      throw std::runtime_error("standard input ended");
    }
    text_.append(piece.data(), static_cast<std::size_t>(size));
  }

  std::string text_;
};

/// Executors of all nodes, each on its own thread.
class Executors
{
public:
  ~Executors()
  {
    for (auto & [number, executor] : executors_) {
      executor->cancel();
    }
    for (auto & thread : threads_) {
      thread.join();
    }
  }

  void add(std::int64_t number, const rclcpp::Node::SharedPtr & node)
  {
    auto & executor = executors_[number];
    if (!executor) {
      executor = std::make_unique<rclcpp::executors::SingleThreadedExecutor>();
    }
    executor->add_node(node);
  }

  void start()
  {
    for (auto & [number, executor] : executors_) {
      threads_.emplace_back([executor = executor.get()]() {executor->spin();});
    }
  }

private:
  std::map<std::int64_t, std::unique_ptr<rclcpp::executors::SingleThreadedExecutor>> executors_;
  std::vector<std::thread> threads_;
};

using Nodes = std::vector<std::unique_ptr<DeclaredNode>>;

void await_peers(const Nodes & nodes)
{
  auto told_ns = monotonic_ns();
  while (true) {
    std::vector<std::string> waiting;
    for (const auto & each : nodes) {
      std::ranges::copy(each->unmatched(), std::back_inserter(waiting));
    }
    const auto now_ns = monotonic_ns();
    if (waiting.empty()) {
      say({{"event", "matched"}, {"mono_ns", now_ns}});
      return;
    }
    if (now_ns - told_ns > ns_per_s) {
      say({{"event", "waiting"}, {"for", waiting}});
      told_ns = now_ns;
    }
    std::this_thread::sleep_for(std::chrono::nanoseconds(look_period_ns));
  }
}

void report_resources(std::int64_t mono_ns)
{
  const auto used = read_resources();
  say(
    {{"event", "resources"}, {"mono_ns", mono_ns}, {"cpu_ns", used.cpu_ns},
      {"arena_kb", used.arena_kb}, {"in_use_kb", used.in_use_kb}, {"mmap_kb", used.mmap_kb},
      {"rss_kb", used.rss_kb}, {"vsz_kb", used.vsz_kb}});
}

/// Sends from start to end, with a last reading of the resources; returns the line that
/// ended it early.
std::optional<std::string> send(
  const Nodes & nodes, Input & input, SampleFile & samples, std::int64_t sampling_ns)
{
  const auto command = json::parse(input.next());
  const auto start_ns = command.at("start_ns").get<std::int64_t>();
  const auto end_ns = command.at("end_ns").get<std::int64_t>();
  auto early = input.next(start_ns);
  for (const auto & each : nodes) {
    each->begin();
  }
  for (auto due_ns = start_ns; !early; due_ns = std::min(due_ns + sampling_ns, end_ns)) {
    early = input.next(due_ns);
    samples.flush();
    report_resources(monotonic_ns());
    if (due_ns >= end_ns) {
      break;
    }
  }
  for (const auto & each : nodes) {
    each->end();
  }
  return early;
}

void report_sent(const Nodes & nodes)
{
  json counts = json::object();
  for (const auto & each : nodes) {
    for (const auto & [id, count] : each->sent()) {
      counts[std::to_string(id)] = count;
    }
  }
  say({{"event", "sent"}, {"counts", counts}});
}

void await_messages(const Nodes & nodes, const std::string & line)
{
  SentCounts sent;
  for (const auto & [id, count] : json::parse(line).at("drain").items()) {
    sent[std::stoll(id)] = count.get<std::int64_t>();
  }
  const auto deadline_ns = monotonic_ns() + drain_limit_ns;
  while (monotonic_ns() < deadline_ns &&
    !std::ranges::all_of(nodes, [&sent](const auto & each) {return each->has_all(sent);}))
  {
    std::this_thread::sleep_for(std::chrono::nanoseconds(look_period_ns));
  }
}

}  // namespace

void run(const Plan & plan)
{
  SampleFile samples(plan.samples);
  Nodes nodes;
  Executors executors;
  for (const auto & each : plan.nodes) {
    nodes.push_back(std::make_unique<DeclaredNode>(each, plan.intra_process, samples));
    executors.add(each.executor, nodes.back()->node());
  }
  executors.start();
  Input input;
  await_peers(nodes);
  const auto early = send(nodes, input, samples, plan.sampling_ns);
  report_sent(nodes);
  await_messages(nodes, early ? *early : input.next());
  samples.flush();
  say({{"event", "done"}});
}

}  // namespace ldos_topology
