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

#ifndef LDOS_LATENCY__MESSAGE_HPP_
#define LDOS_LATENCY__MESSAGE_HPP_

#include <cstddef>
#include <cstdint>
#include <string>

#include <rclcpp/rclcpp.hpp>
#include <std_msgs/msg/u_int8_multi_array.hpp>

namespace ldos_latency
{

using Message = std_msgs::msg::UInt8MultiArray;

constexpr const char * kPingTopic = "/ldos_ping";
constexpr const char * kPongTopic = "/ldos_pong";

Message make_message(std::size_t size);

/// Time of an answer; 0 in a message that is no answer.
std::int64_t stamp_of(const Message & message);
void set_stamp(Message & message, std::int64_t stamp_ns);

/// Keeps only the last message, with the reliability of the parameter `reliability`.
rclcpp::QoS qos_of(rclcpp::Node & node);

}  // namespace ldos_latency

#endif  // LDOS_LATENCY__MESSAGE_HPP_
