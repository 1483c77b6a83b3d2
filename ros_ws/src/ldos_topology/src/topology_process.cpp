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

#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>

#include <nlohmann/json.hpp>
#include <rclcpp/rclcpp.hpp>

#include "ldos_topology/plan.hpp"
#include "ldos_topology/run.hpp"

/// The only argument is a file that holds the plan.
int main(int argc, char ** argv)
{
  if (argc != 2) {
    std::cerr << "usage: topology_process PLAN.json\n";
    return EXIT_FAILURE;
  }
  // Timers fire up to 50 µs late otherwise.
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  try {
    std::ifstream file;
    file.exceptions(std::ios::failbit | std::ios::badbit);
    file.open(argv[1]);
    const auto plan = ldos_topology::decode_plan(nlohmann::json::parse(file));
    // Signals end it immediately, because there is nothing to clean up.
    rclcpp::init(1, argv, rclcpp::InitOptions(), rclcpp::SignalHandlerOptions::None);
    ldos_topology::run(plan);
    rclcpp::shutdown();
  } catch (const std::exception & error) {
    std::cerr << "topology_process: " << error.what() << '\n';
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
