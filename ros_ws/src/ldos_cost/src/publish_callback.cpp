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

#include <sys/prctl.h>

#include <atomic>
#include <cstddef>
#include <exception>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <rclcpp/rclcpp.hpp>
#include <std_msgs/msg/string.hpp>

#include "ldos_cost/rung.hpp"
#include "ldos_cost/settings.hpp"
#include "ldos_cost/stamps.hpp"
#include "tracetools/tracetools.h"

namespace
{

using ldos_cost::Settings;
using std_msgs::msg::String;

constexpr std::int64_t match_period_ns = 20'000'000;
constexpr std::int64_t complete_period_ns = 2'000'000;
constexpr std::int64_t cancel_period_ns = 1'000'000;

/// The messages of one exchange.
struct Load
{
  std::int64_t size_bytes{};
  std::int64_t ticks{};
  double rate_hz{};

  bool makes_sense() const
  {
    return size_bytes >= static_cast<std::int64_t>(ldos_cost::stamp_digits) && ticks > 0 &&
           rate_hz > 0.0;
  }
};

/// Time from a message's stamp to the begin of its callback, for each received message.
class Latencies
{
public:
  /// While no callback runs.
  void expect(std::int64_t count)
  {
    latencies_ns_.clear();
    latencies_ns_.reserve(static_cast<std::size_t>(count));
    received_ = 0;
  }

  void add(const String & message)
  {
    const auto now_ns = ldos_cost::monotonic_ns();
    latencies_ns_.push_back(now_ns - ldos_cost::read_stamp(message.data));
    ++received_;
  }

  /// From any thread.
  std::int64_t received() const {return received_;}

  /// While no callback runs.
  const std::vector<std::int64_t> & all_ns() const {return latencies_ns_;}

private:
  std::vector<std::int64_t> latencies_ns_;
  std::atomic<std::int64_t> received_{0};
};

/// A publisher and a subscription in two nodes of one process.
class Pair
{
public:
  explicit Pair(const Settings & settings)
  : settings_(settings),
    talker_(std::make_shared<rclcpp::Node>("cost_talker")),
    listener_(std::make_shared<rclcpp::Node>("cost_listener"))
  {
    const auto topic = ldos_cost::topic_name(0);
    publisher_ = talker_->create_publisher<String>(topic, rclcpp::QoS(10));
    subscription_ = listener_->create_subscription<String>(
      topic, rclcpp::QoS(10), [this](const String & message) {latencies_.add(message);});
    executor_.add_node(listener_);
    start();
  }

  ~Pair() {stop();}

  Pair(const Pair &) = delete;
  Pair & operator=(const Pair &) = delete;

  bool await_match() const
  {
    const auto limit_ns = static_cast<std::int64_t>(settings_.match_s * 1e9);
    const auto end_ns = ldos_cost::monotonic_ns() + limit_ns;
    while (publisher_->get_subscription_count() == 0) {
      if (ldos_cost::monotonic_ns() > end_ns) {
        return false;
      }
      ldos_cost::sleep_until(ldos_cost::monotonic_ns() + match_period_ns);
    }
    return true;
  }

  /// Publishes one message per tick; returns when all arrived, or after the time limit.
  std::string exchange(const Load & load)
  {
    stop();
    latencies_.expect(load.ticks);
    start();
    publish(load);
    await_complete(load.ticks);
    stop();
    auto line = line_of(load.ticks);
    start();
    return line;
  }

private:
  void start()
  {
    has_ended_ = false;
    thread_ = std::thread(
      [this]() {
        executor_.spin();
        has_ended_ = true;
      });
  }

  void stop()
  {
    // An executor that is cancelled before it spins would never end: it is cancelled repeatedly.
    while (!has_ended_) {
      executor_.cancel();
      ldos_cost::sleep_until(ldos_cost::monotonic_ns() + cancel_period_ns);
    }
    thread_.join();
  }

  void publish(const Load & load)
  {
    String message;
    message.data.assign(static_cast<std::size_t>(load.size_bytes), ' ');
    const auto begin_ns = ldos_cost::monotonic_ns();
    for (std::int64_t tick = 1; tick <= load.ticks; ++tick) {
      const double after_s = static_cast<double>(tick) / load.rate_hz;
      ldos_cost::sleep_until(begin_ns + static_cast<std::int64_t>(after_s * 1e9));
      ldos_cost::write_stamp(message.data, ldos_cost::monotonic_ns());
      publisher_->publish(message);
    }
  }

  void await_complete(std::int64_t count) const
  {
    const auto end_ns = ldos_cost::monotonic_ns() + ldos_cost::Rung::patience_ns;
    while (latencies_.received() < count && ldos_cost::monotonic_ns() < end_ns) {
      ldos_cost::sleep_until(ldos_cost::monotonic_ns() + complete_period_ns);
    }
  }

  std::string line_of(std::int64_t published) const
  {
    std::ostringstream line;
    line << "{\"published\": " << published << ", \"latencies_ns\": [";
    const char * comma = "";
    for (const auto latency_ns : latencies_.all_ns()) {
      line << comma << latency_ns;
      comma = ", ";
    }
    line << "]}\n";
    return line.str();
  }

  Settings settings_;
  Latencies latencies_;
  rclcpp::Node::SharedPtr talker_;
  rclcpp::Node::SharedPtr listener_;
  rclcpp::Publisher<String>::SharedPtr publisher_;
  rclcpp::Subscription<String>::SharedPtr subscription_;
  rclcpp::executors::SingleThreadedExecutor executor_;
  std::atomic<bool> has_ended_{false};
  std::thread thread_;
};

/// Time of one call of a tracepoint in a loop, in nanoseconds.
std::string time_tracepoints(std::int64_t count)
{
  const auto begin_ns = ldos_cost::monotonic_ns();
  for (std::int64_t call = 0; call < count; ++call) {
    TRACETOOLS_TRACEPOINT(rclcpp_publish, static_cast<const void *>(nullptr), nullptr);
  }
  const auto elapsed_ns = ldos_cost::monotonic_ns() - begin_ns;
  std::ostringstream line;
  line << "{\"calls\": " << count << ", \"elapsed_ns\": " << elapsed_ns << "}\n";
  return line.str();
}

/// Answers a request with one line: `exchange SIZE_BYTES TICKS RATE_HZ`, or `tracepoints COUNT`.
std::string answer(Pair & pair, const std::string & question)
{
  std::istringstream words(question);
  std::string asked;
  words >> asked;
  if (std::int64_t count = 0; asked == "tracepoints" && words >> count && count > 0) {
    return time_tracepoints(count);
  }
  Load load;
  words >> load.size_bytes >> load.ticks >> load.rate_hz;
  if (asked != "exchange" || !words || !load.makes_sense()) {
    throw std::invalid_argument("'" + question + "' is no question");
  }
  return pair.exchange(load);
}

void serve(const Settings & settings)
{
  // Threads wake up to 50 µs late otherwise.
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  Pair pair(settings);
  const bool matched = pair.await_match();
  std::cout << "{\"matched\": " << (matched ? "true" : "false") << "}" << std::endl;
  for (std::string line; matched && std::getline(std::cin, line); ) {
    std::cout << answer(pair, line) << std::flush;
  }
}

}  // namespace

int main(int count, char ** words)
{
  try {
    const auto settings = ldos_cost::read_settings(count, words);
    rclcpp::init(0, nullptr);
    serve(settings);
    rclcpp::shutdown();
    return 0;
  } catch (const std::exception & error) {
    std::cerr << "publish_callback: " << error.what() << std::endl;
    return 2;
  }
}
