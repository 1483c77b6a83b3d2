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

#include "ldos_guard/steering.hpp"

#include <stop_token>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "ldos_guard/monotonic.hpp"

namespace ldos_guard
{
namespace
{

/// Time between two checks for a share to send.
constexpr std::chrono::milliseconds period{20};

rclcpp::ExecutorOptions options_of(rclcpp::Node & node)
{
  rclcpp::ExecutorOptions options;
  options.context = node.get_node_base_interface()->get_context();
  return options;
}

}  // namespace

Steering::Steering(
  rclcpp::Node & node, const std::vector<std::string> & publishers, const std::string & parameter)
: group_(node.create_callback_group(rclcpp::CallbackGroupType::MutuallyExclusive, false)),
  executor_(options_of(node))
{
  for (const auto & name : publishers) {
    publishers_.push_back(
      {name, std::make_unique<ThrottledPublisher>(
          node, group_, name, parameter, [this]() {note();})});
  }
  timer_ = node.create_wall_timer(period, [this]() {steer();}, group_);
  executor_.add_callback_group(group_, node.get_node_base_interface());
  const auto context = node.get_node_base_interface()->get_context();
  thread_ = std::jthread(
    [this, context](const std::stop_token & stopping) {
      while (!stopping.stop_requested() && rclcpp::ok(context)) {
        executor_.spin_once(2 * period);
      }
    });
}

void Steering::set_share(double share)
{
  const std::scoped_lock lock(mutex_);
  if (!is_released_ && share_ != share) {
    share_ = share;
    is_settled_ = false;
  }
}

void Steering::release(std::chrono::milliseconds patience)
{
  set_share(1.0);
  std::unique_lock lock(mutex_);
  is_released_ = true;
  noted_.wait_for(lock, patience, [this]() {return is_settled_;});
}

std::vector<std::string> Steering::missing() const
{
  const std::scoped_lock lock(mutex_);
  return missing_;
}

void Steering::steer()
{
  const double wanted = share();
  const auto now_ns = monotonic_ns();
  for (const auto & each : publishers_) {
    each.publisher->steer(wanted, now_ns);
  }
  note();
}

void Steering::note()
{
  std::vector<std::string> missing;
  for (const auto & each : publishers_) {
    if (!each.publisher->complaint().empty()) {
      missing.push_back(each.name + ": " + each.publisher->complaint());
    }
  }
  const double wanted = share();
  const bool is_settled = std::all_of(
    publishers_.begin(), publishers_.end(), [wanted](const auto & each) {
      return each.publisher->is_settled(wanted);
    });
  const std::scoped_lock lock(mutex_);
  missing_ = std::move(missing);
  is_settled_ = is_settled && wanted == share_;
  noted_.notify_all();
}

double Steering::share() const
{
  const std::scoped_lock lock(mutex_);
  return share_;
}

}  // namespace ldos_guard
