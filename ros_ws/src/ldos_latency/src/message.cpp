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

#include "ldos_latency/message.hpp"

#include <stdexcept>

namespace ldos_latency
{

Message make_message(std::size_t size)
{
  Message message;
  message.layout.dim.resize(1);
  message.data.resize(size);
  return message;
}

std::int64_t stamp_of(const Message & message)
{
  const auto & words = message.layout.dim.at(0);
  return static_cast<std::int64_t>((std::uint64_t{words.size} << 32U) | words.stride);
}

void set_stamp(Message & message, std::int64_t stamp_ns)
{
  auto & words = message.layout.dim.at(0);
  words.size = static_cast<std::uint32_t>(static_cast<std::uint64_t>(stamp_ns) >> 32U);
  words.stride = static_cast<std::uint32_t>(static_cast<std::uint64_t>(stamp_ns) & 0xFFFFFFFFU);
}

rclcpp::QoS qos_of(rclcpp::Node & node)
{
  const auto reliability = node.declare_parameter<std::string>("reliability", "reliable");
  rclcpp::QoS qos(rclcpp::KeepLast(1));
  if (reliability == "reliable") {
    return qos.reliable();
  }
  if (reliability == "best_effort") {
    return qos.best_effort();
  }
  throw std::invalid_argument("reliability is '" + reliability + "': reliable or best_effort");
}

}  // namespace ldos_latency
