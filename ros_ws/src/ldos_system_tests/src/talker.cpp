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

// Publishes 200 messages, and marks its process for `tracetools_test`.

#include <lttng/tracef.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <rclcpp/rclcpp.hpp>
#include <std_msgs/msg/string.hpp>

constexpr char TEST_ID[] = "TRACETOOLS_TEST_TRACE_TEST_ID";
constexpr int MESSAGES = 200;

int main(int argc, char ** argv)
{
  if (const char * const id = std::getenv(TEST_ID)) {
    lttng_ust_tracef("%s=%s", TEST_ID, id);
  }
  rclcpp::init(argc, argv);
  const auto node = std::make_shared<rclcpp::Node>("talker");
  const auto publisher = node->create_publisher<std_msgs::msg::String>("chatter", 10);
  rclcpp::WallRate rate(std::chrono::milliseconds(5));
  for (int sent = 0; rclcpp::ok() && sent < MESSAGES; ++sent) {
    publisher->publish(std_msgs::msg::String());
    rate.sleep();
  }
  rclcpp::shutdown();
}
