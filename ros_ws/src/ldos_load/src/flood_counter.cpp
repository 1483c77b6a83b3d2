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

#include "ldos_load/flood_counter.hpp"

#include <chrono>
#include <iostream>
#include <string>

#include <rclcpp_components/register_node_macro.hpp>

#include "ldos_load/counts.hpp"
#include "ldos_load/flood_counter_parameters.hpp"
#include "ldos_load/payload.hpp"

namespace ldos_load
{
namespace
{

rclcpp::QoS qos_of(const flood_counter::Params & params)
{
  const rclcpp::QoS qos(rclcpp::KeepLast(static_cast<std::size_t>(params.depth)));
  return params.reliability == "reliable" ? rclcpp::QoS(qos).reliable() :
         rclcpp::QoS(qos).best_effort();
}

}  // namespace

FloodCounter::FloodCounter(const rclcpp::NodeOptions & options)
: rclcpp::Node("flood_counter", options)
{
  survive_without_reader();
  flood_counter::ParamListener parameters(get_node_parameters_interface());
  const auto params = parameters.get_params();
  for (const auto & topic :
    topic_names(params.topic_prefix, params.first_number, params.publishers))
  {
    auto & counter = counters_[topic];
    subscriptions_.push_back(
      create_subscription<std_msgs::msg::String>(
        topic, qos_of(params), [&counter](const std_msgs::msg::String & message) {
          counter.observe(read_sequence(message.data));
        }));
  }
  timer_ = create_wall_timer(
    std::chrono::duration<double>(params.report_period_s), [this]() {report(false);});
}

FloodCounter::~FloodCounter()
{
  report(true);
}

void FloodCounter::report(bool is_final) const
{
  CountsByTopic received;
  CountsByTopic lost;
  for (const auto & [topic, counter] : counters_) {
    received[topic] = counter.received();
    lost[topic] = counter.lost();
  }
  std::cout << received_line(monotonic_ns(), received, lost, is_final) << std::flush;
}

}  // namespace ldos_load

RCLCPP_COMPONENTS_REGISTER_NODE(ldos_load::FloodCounter)
