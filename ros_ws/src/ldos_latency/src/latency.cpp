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

#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include <rclcpp/rclcpp.hpp>

#include "ldos_latency/ping.hpp"
#include "ldos_latency/pong.hpp"

namespace
{

std::string read_role()
{
  return rclcpp::Node("latency_role").declare_parameter<std::string>("role", "ping");
}

void answer()
{
  const auto pong = std::make_shared<ldos_latency::Pong>();
  std::cout << "{\"ready\": true}" << std::endl;
  rclcpp::spin(pong);
}

void ask()
{
  const auto ping = std::make_shared<ldos_latency::Ping>();
  rclcpp::executors::SingleThreadedExecutor executor;
  executor.add_node(ping);
  ping->run(executor);
}

/// Runs each node on its own executor and thread.
void ask_and_answer()
{
  const auto pong = std::make_shared<ldos_latency::Pong>();
  rclcpp::executors::SingleThreadedExecutor executor;
  executor.add_node(pong);
  std::thread thread([&executor]() {executor.spin();});
  try {
    ask();
  } catch (...) {
    executor.cancel();
    thread.join();
    throw;
  }
  executor.cancel();
  thread.join();
}

}  // namespace

int main(int argc, char ** argv)
{
  rclcpp::init(argc, argv);
  int code = 0;
  try {
    const auto role = read_role();
    if (role == "pong") {
      answer();
    } else if (role == "ping") {
      ask();
    } else if (role == "both") {
      ask_and_answer();
    } else {
      throw std::invalid_argument("role is '" + role + "': ping, pong or both");
    }
  } catch (const std::exception & error) {
    std::cerr << "latency: " << error.what() << std::endl;
    code = 1;
  }
  rclcpp::shutdown();
  return code;
}
