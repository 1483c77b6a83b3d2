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

#ifndef LDOS_LOAD__FLOOD_PUBLISHER_HPP_
#define LDOS_LOAD__FLOOD_PUBLISHER_HPP_

#include <stop_token>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <rclcpp/rclcpp.hpp>
#include <std_msgs/msg/string.hpp>

#include "ldos_load/rate_schedule.hpp"

namespace ldos_load
{

/// A thread that floods one topic.
class Flood
{
public:
  Flood(
    rclcpp::Publisher<std_msgs::msg::String>::SharedPtr publisher, const RateSchedule & schedule,
    std::size_t size_bytes);

  /// Returns when no message is sent any more.
  void stop();

  std::uint64_t published() const {return published_;}
  std::string topic() const {return publisher_->get_topic_name();}

private:
  void publish_until(const std::stop_token & stopping, std::size_t size_bytes);

  rclcpp::Publisher<std_msgs::msg::String>::SharedPtr publisher_;
  RateSchedule schedule_;
  std::atomic<std::uint64_t> published_{0};
  std::jthread thread_;
};

/// Floods topics at a fixed rate, and says once a second and at the end how far it got.
class FloodPublisher : public rclcpp::Node
{
public:
  explicit FloodPublisher(const rclcpp::NodeOptions & options);
  ~FloodPublisher() override;

private:
  void report(bool is_final) const;

  RateSchedule schedule_;
  std::vector<std::unique_ptr<Flood>> floods_;
  rclcpp::TimerBase::SharedPtr timer_;
};

}  // namespace ldos_load

#endif  // LDOS_LOAD__FLOOD_PUBLISHER_HPP_
