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

#ifndef LDOS_LATENCY__PING_HPP_
#define LDOS_LATENCY__PING_HPP_

#include <memory>
#include <optional>
#include <string>

#include "ldos_latency/exchange.hpp"
#include "ldos_latency/message.hpp"

namespace ldos_latency
{

/// Sends a message, waits for its answer, and sends the next.
class Ping : public rclcpp::Node
{
public:
  Ping();

  /// Measures, writes the times, and prints a report; returns at the end or at a signal.
  void run(rclcpp::Executor & executor);

private:
  bool is_matched() const;
  bool await_match(rclcpp::Executor & executor) const;
  void send_due();
  void take(const Message & message);
  void report(bool is_alone) const;

  ExchangeSettings settings_;
  std::int64_t match_timeout_ns_;
  std::string samples_;
  Message message_;
  std::optional<Exchange> exchange_;
  rclcpp::Publisher<Message>::SharedPtr publisher_;
  rclcpp::Subscription<Message>::SharedPtr subscription_;
};

}  // namespace ldos_latency

#endif  // LDOS_LATENCY__PING_HPP_
