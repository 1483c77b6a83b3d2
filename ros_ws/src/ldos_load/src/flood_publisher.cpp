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

#include "ldos_load/flood_publisher.hpp"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include <rclcpp_components/register_node_macro.hpp>

#include "ldos_load/counts.hpp"
#include "ldos_load/flood_publisher_parameters.hpp"
#include "ldos_load/payload.hpp"

namespace ldos_load
{
namespace
{

constexpr std::int64_t ns_per_s = 1'000'000'000;
/// Longer waits are cut, so that the thread can be ended.
constexpr std::int64_t longest_sleep_ns = ns_per_s / 10;
/// Time for the middleware to connect publishers and subscriptions.
constexpr std::int64_t head_start_ns = ns_per_s / 2;

void sleep_until(std::int64_t mono_ns)
{
  timespec moment{};
  moment.tv_sec = mono_ns / ns_per_s;
  moment.tv_nsec = mono_ns % ns_per_s;
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, nullptr);
}

rclcpp::QoS qos_of(const flood_publisher::Params & params)
{
  const rclcpp::QoS qos(rclcpp::KeepLast(static_cast<std::size_t>(params.depth)));
  return params.reliability == "reliable" ? rclcpp::QoS(qos).reliable() :
         rclcpp::QoS(qos).best_effort();
}

}  // namespace

Flood::Flood(
  rclcpp::Publisher<std_msgs::msg::String>::SharedPtr publisher, const RateSchedule & schedule,
  std::size_t size_bytes)
: publisher_(std::move(publisher)), schedule_(schedule),
  thread_([this, size_bytes](const std::stop_token & stopping) {
      publish_until(stopping, size_bytes);
    })
{}

void Flood::stop()
{
  thread_.request_stop();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Flood::publish_until(const std::stop_token & stopping, std::size_t size_bytes)
{
  // Threads wake up to 50 µs late otherwise.
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  std_msgs::msg::String message;
  message.data = make_payload(size_bytes);
  for (std::uint64_t sequence = 0; !stopping.stop_requested(); ) {
    const std::int64_t now_ns = monotonic_ns();
    const std::int64_t due_ns = schedule_.due_ns(sequence);
    if (due_ns > now_ns) {
      sleep_until(std::min(due_ns, now_ns + longest_sleep_ns));
      continue;
    }
    write_sequence(message.data, sequence);
    publisher_->publish(message);
    published_ = ++sequence;
  }
}

FloodPublisher::FloodPublisher(const rclcpp::NodeOptions & options)
: rclcpp::Node("flood_publisher", options), schedule_(1.0, 1, 0)
{
  flood_publisher::ParamListener parameters(get_node_parameters_interface());
  const auto params = parameters.get_params();
  const auto burst = static_cast<std::uint64_t>(params.burst);
  schedule_ = RateSchedule(params.rate_hz, burst, monotonic_ns() + head_start_ns);
  for (const auto & topic :
    topic_names(params.topic_prefix, params.first_number, params.publishers))
  {
    floods_.push_back(
      std::make_unique<Flood>(
        create_publisher<std_msgs::msg::String>(topic, qos_of(params)), schedule_,
        static_cast<std::size_t>(params.size_bytes)));
  }
  timer_ = create_wall_timer(std::chrono::seconds(1), [this]() {report(false);});
}

FloodPublisher::~FloodPublisher()
{
  for (const auto & flood : floods_) {
    flood->stop();
  }
  report(true);
}

void FloodPublisher::report(bool is_final) const
{
  const auto now_ns = monotonic_ns();
  CountsByTopic published;
  for (const auto & flood : floods_) {
    published[flood->topic()] = flood->published();
  }
  const auto requested = schedule_.due_by(now_ns) * floods_.size();
  std::cout << published_line(now_ns, published, requested, is_final) << std::flush;
}

}  // namespace ldos_load

RCLCPP_COMPONENTS_REGISTER_NODE(ldos_load::FloodPublisher)
