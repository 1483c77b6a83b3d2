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

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <rclcpp/contexts/default_context.hpp>
#include <rosidl_typesupport_cpp/message_type_support.hpp>
#include <std_msgs/msg/string.hpp>

#include "ldos_cost/rung.hpp"
#include "ldos_cost/stamps.hpp"
#include "rcl/context.h"
#include "rmw/error_handling.h"
#include "rmw/qos_profiles.h"
#include "rmw/rmw.h"

namespace ldos_cost
{
namespace
{

constexpr std::int64_t ns_per_s = 1'000'000'000;

template<typename Entity>
Entity * require(Entity * entity, const char * what)
{
  if (entity == nullptr) {
    const std::string reason = rmw_get_error_string().str;
    rmw_reset_error();
    throw std::runtime_error(std::string(what) + " could not be made: " + reason);
  }
  return entity;
}

/// Prints a failure in a destructor, where nothing more can be done.
void print_failure(rmw_ret_t result)
{
  if (result != RMW_RET_OK) {
    std::cerr << "cost_ladder: " << rmw_get_error_string().str << std::endl;
    rmw_reset_error();
  }
}

/// Writers and readers of the RMW alone, on one thread: no client library, no executor.
class MiddlewareOnly : public Rung
{
public:
  explicit MiddlewareOnly(const Settings & settings)
  : settings_(settings)
  {
    message_.data.assign(static_cast<std::size_t>(settings.size_bytes), ' ');
    const auto context = rclcpp::contexts::get_global_default_context()->get_rcl_context();
    rmw_context_ = rcl_context_get_rmw_context(context.get());
    node_ = require(rmw_create_node(rmw_context_, "cost_middleware", "/"), "the RMW's node");
    for (std::int64_t topic = 0; topic < settings.topics; ++topic) {
      add_topic(topic_name(topic));
    }
    wait_set_ = require(
      rmw_create_wait_set(rmw_context_, subscriptions_.size()), "the RMW's wait set");
  }

  ~MiddlewareOnly() override
  {
    print_failure(rmw_destroy_wait_set(wait_set_));
    for (auto * subscription : subscriptions_) {
      print_failure(rmw_destroy_subscription(node_, subscription));
    }
    for (auto * publisher : publishers_) {
      print_failure(rmw_destroy_publisher(node_, publisher));
    }
    print_failure(rmw_destroy_node(node_));
  }

  bool is_matched() override
  {
    const auto wanted = static_cast<std::size_t>(settings_.subscribers);
    return std::all_of(
      publishers_.begin(), publishers_.end(), [wanted](const rmw_publisher_t * publisher) {
        std::size_t count = 0;
        const auto asked = rmw_publisher_count_matched_subscriptions(publisher, &count);
        return asked == RMW_RET_OK && count >= wanted;
      });
  }

  Counts exchange() override
  {
    counts_ = {};
    std::int64_t tick = 0;
    auto due_ns = monotonic_ns() + settings_.period_ns();
    const auto end_ns = due_ns + settings_.ticks * settings_.period_ns() + patience_ns;
    while (counts_.received < settings_.deliveries()) {
      const auto now_ns = monotonic_ns();
      if (now_ns >= end_ns) {
        break;
      }
      if (tick < settings_.ticks && now_ns >= due_ns) {
        publish_all();
        ++tick;
        due_ns += settings_.period_ns();
      } else {
        wait_and_take((tick < settings_.ticks ? due_ns : end_ns) - now_ns);
      }
    }
    return counts_;
  }

private:
  void add_topic(const std::string & name)
  {
    const auto * type =
      rosidl_typesupport_cpp::get_message_type_support_handle<std_msgs::msg::String>();
    const auto publisher_options = rmw_get_default_publisher_options();
    const auto subscription_options = rmw_get_default_subscription_options();
    publishers_.push_back(
      require(
        rmw_create_publisher(
          node_, type, name.c_str(), &rmw_qos_profile_default, &publisher_options),
        "a publisher of the RMW"));
    for (std::int64_t count = 0; count < settings_.subscribers; ++count) {
      subscriptions_.push_back(
        require(
          rmw_create_subscription(
            node_, type, name.c_str(), &rmw_qos_profile_default, &subscription_options),
          "a subscription of the RMW"));
    }
  }

  void publish_all()
  {
    for (const auto * publisher : publishers_) {
      if (rmw_publish(publisher, &message_, nullptr) == RMW_RET_OK) {
        ++counts_.published;
      }
    }
  }

  void wait_and_take(std::int64_t timeout_ns)
  {
    std::vector<void *> data;
    data.reserve(subscriptions_.size());
    for (const auto * subscription : subscriptions_) {
      data.push_back(subscription->data);
    }
    rmw_subscriptions_t ready{data.size(), data.data()};
    rmw_guard_conditions_t guards{0, nullptr};
    rmw_services_t services{0, nullptr};
    rmw_clients_t clients{0, nullptr};
    rmw_events_t events{0, nullptr};
    const rmw_time_t timeout{
      static_cast<std::uint64_t>(timeout_ns / ns_per_s),
      static_cast<std::uint64_t>(timeout_ns % ns_per_s)};
    const auto woken =
      rmw_wait(&ready, &guards, &services, &clients, &events, wait_set_, &timeout);
    if (woken != RMW_RET_OK) {
      return;
    }
    for (std::size_t place = 0; place < data.size(); ++place) {
      if (data[place] != nullptr) {
        take(subscriptions_[place]);
      }
    }
  }

  void take(const rmw_subscription_t * subscription)
  {
    bool taken = false;
    if (rmw_take(subscription, &taken_, &taken, nullptr) == RMW_RET_OK && taken) {
      ++counts_.received;
    }
  }

  Settings settings_;
  std_msgs::msg::String message_;
  std_msgs::msg::String taken_;
  Counts counts_;
  rmw_context_t * rmw_context_{nullptr};
  rmw_node_t * node_{nullptr};
  rmw_wait_set_t * wait_set_{nullptr};
  std::vector<rmw_publisher_t *> publishers_;
  std::vector<rmw_subscription_t *> subscriptions_;
};

}  // namespace

std::unique_ptr<Rung> make_middleware_only(const Settings & settings)
{
  return std::make_unique<MiddlewareOnly>(settings);
}

}  // namespace ldos_cost
