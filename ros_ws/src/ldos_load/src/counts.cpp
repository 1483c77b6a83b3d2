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

#include "ldos_load/counts.hpp"

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace ldos_load
{
namespace
{

using nlohmann::ordered_json;

}  // namespace

std::int64_t monotonic_ns()
{
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

void survive_without_reader()
{
  std::signal(SIGPIPE, SIG_IGN);
}

std::vector<std::string> topic_names(
  const std::string & prefix, std::int64_t first_number, std::int64_t count)
{
  std::vector<std::string> names;
  for (std::int64_t number = first_number; number < first_number + count; ++number) {
    names.push_back(prefix + std::to_string(number));
  }
  return names;
}

std::string published_line(std::int64_t mono_ns, const Progress & progress, bool is_final)
{
  auto bins = ordered_json::object();
  for (const auto & [bin, count] : progress.error_bins) {
    bins[std::to_string(bin)] = count;
  }
  const ordered_json line{
    {"mono_ns", mono_ns},
    {"published", progress.published},
    {"requested", progress.requested},
    {"allowed", progress.allowed},
    {"given_up", progress.given_up},
    {"error_bins", bins},
    {"final", is_final}};
  return line.dump() + "\n";
}

std::string received_line(
  std::int64_t mono_ns, const CountsByTopic & received, const CountsByTopic & lost, bool is_final)
{
  const ordered_json line{
    {"mono_ns", mono_ns}, {"received", received}, {"lost", lost}, {"final", is_final}};
  return line.dump() + "\n";
}

}  // namespace ldos_load
