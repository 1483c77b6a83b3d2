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

#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

#include <rclcpp/rclcpp.hpp>

#include "ldos_cost/rung.hpp"
#include "ldos_cost/settings.hpp"
#include "ldos_cost/stamps.hpp"
#include "ldos_cost/usage.hpp"

namespace
{

using ldos_cost::NodesKind;
using ldos_cost::Rung;
using ldos_cost::Settings;

constexpr std::int64_t match_period_ns = 20'000'000;

std::unique_ptr<Rung> make_rung(const Settings & settings)
{
  if (settings.rung == "in_process") {
    return ldos_cost::make_in_process(settings);
  }
  if (settings.rung == "dds") {
    return ldos_cost::make_middleware_only(settings);
  }
  if (settings.rung == "no_publishing") {
    return ldos_cost::make_nodes(settings, {settings.nodes, false, false});
  }
  if (settings.rung == "one_node") {
    return ldos_cost::make_nodes(settings, {1, false, true});
  }
  if (settings.rung == "many_nodes") {
    return ldos_cost::make_nodes(settings, {settings.nodes, false, true});
  }
  if (settings.rung == "many_participants") {
    return ldos_cost::make_nodes(settings, {settings.nodes, true, true});
  }
  throw std::invalid_argument("rung is '" + settings.rung + "', which is none");
}

bool await_match(Rung & rung, double limit_s)
{
  const auto end_ns = ldos_cost::monotonic_ns() + static_cast<std::int64_t>(limit_s * 1e9);
  while (!rung.is_matched()) {
    if (ldos_cost::monotonic_ns() > end_ns) {
      return false;
    }
    ldos_cost::sleep_until(ldos_cost::monotonic_ns() + match_period_ns);
  }
  return true;
}

ldos_cost::Exchanged measure(Rung & rung, const Settings & settings)
{
  const auto before = ldos_cost::read_usage();
  const auto begin_ns = ldos_cost::monotonic_ns();
  const auto counts = rung.exchange();
  const auto wall_ns = ldos_cost::monotonic_ns() - begin_ns;
  return {
    settings.ticks, counts.published, counts.received, wall_ns,
    ldos_cost::read_usage() - before};
}

/// Makes one exchange for each input line, and prints one line in response.
void serve(const Settings & settings)
{
  // Threads wake up to 50 µs late otherwise.
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  const auto rung = make_rung(settings);
  const bool matched = await_match(*rung, settings.match_s);
  std::cout << "{\"matched\": " << (matched ? "true" : "false") << "}" << std::endl;
  for (std::string line; matched && std::getline(std::cin, line); ) {
    std::cout << ldos_cost::exchanged_line(measure(*rung, settings)) << std::flush;
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
    std::cerr << "cost_ladder: " << error.what() << std::endl;
    return 2;
  }
}
