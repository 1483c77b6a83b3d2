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

#include "ldos_topology/declared_node.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ldos_topology
{
namespace
{

rclcpp::NodeOptions options_of(bool intra_process)
{
  return rclcpp::NodeOptions().use_intra_process_comms(intra_process);
}

}  // namespace

DeclaredNode::DeclaredNode(const NodePlan & plan, bool intra_process, SampleFile & samples)
: node_(std::make_shared<rclcpp::Node>(plan.name, plan.name_space, options_of(intra_process))),
  samples_(samples)
{
  for (const auto & each : plan.publishers) {
    auto publisher = node_->create_publisher<Message>(each.end.topic, each.end.qos);
    senders_.push_back(std::make_unique<Sender>(Sender{each, std::move(publisher)}));
  }
  for (const auto & each : plan.subscriptions) {
    subscribe(each);
  }
  for (const auto & each : plan.clients) {
    auto client = node_->create_client<Service>(each.service);
    askers_.push_back(std::make_unique<Asker>(Asker{each, std::move(client)}));
  }
  for (const auto & each : plan.services) {
    serve(each);
  }
}

void DeclaredNode::subscribe(const SubscriptionPlan & plan)
{
  const auto id = plan.end.id;
  subscription_plans_.push_back(plan);
  if (plan.end.by_unique_ptr) {
    subscriptions_.push_back(
      node_->create_subscription<Message>(
        plan.end.topic, plan.end.qos,
        [this, id](Message::UniquePtr message) {receive(id, *message);}));
  } else {
    subscriptions_.push_back(
      node_->create_subscription<Message>(
        plan.end.topic, plan.end.qos,
        [this, id](Message::ConstSharedPtr message) {receive(id, *message);}));
  }
}

void DeclaredNode::serve(const std::string & service)
{
  services_.push_back(
    node_->create_service<Service>(
      service,
      [](Service::Request::SharedPtr request, Service::Response::SharedPtr response) {
        response->tracking_number = request->tracking_number;
        response->sent_ns = request->sent_ns;
        response->data = request->data;
      }));
}

std::vector<std::string> DeclaredNode::unmatched() const
{
  const std::string name = node_->get_fully_qualified_name();
  std::vector<std::string> found;
  for (const auto & each : senders_) {
    if (each->publisher->get_subscription_count() < each->plan.readers) {
      found.push_back(name + " publishing " + each->plan.end.topic);
    }
  }
  for (std::size_t place = 0; place < subscriptions_.size(); ++place) {
    const auto & plan = subscription_plans_[place];
    if (subscriptions_[place]->get_publisher_count() < plan.writers.size()) {
      found.push_back(name + " subscribing " + plan.end.topic);
    }
  }
  for (const auto & each : askers_) {
    if (!each->client->service_is_ready()) {
      found.push_back(name + " asking " + each->plan.service);
    }
  }
  return found;
}

void DeclaredNode::begin()
{
  {
    const std::lock_guard lock(sending_);
    is_sending_ = true;
  }
  for (const auto & each : senders_) {
    auto & sender = *each;
    timers_.push_back(
      node_->create_wall_timer(
        std::chrono::nanoseconds(sender.plan.period_ns), [this, &sender]() {publish(sender);}));
  }
  for (const auto & each : askers_) {
    auto & asker = *each;
    timers_.push_back(
      node_->create_wall_timer(
        std::chrono::nanoseconds(asker.plan.period_ns), [this, &asker]() {ask(asker);}));
  }
}

void DeclaredNode::end()
{
  const std::lock_guard lock(sending_);
  is_sending_ = false;
}

void DeclaredNode::publish(Sender & sender)
{
  const std::lock_guard lock(sending_);
  if (!is_sending_) {
    return;
  }
  auto message = std::make_unique<Message>();
  message->publisher = static_cast<std::uint32_t>(sender.plan.end.id);
  message->tracking_number = static_cast<std::uint64_t>(sender.sent);
  message->data.resize(sender.plan.size_bytes);
  ++sender.sent;
  message->sent_ns = monotonic_ns();
  if (sender.plan.end.by_unique_ptr) {
    sender.publisher->publish(std::move(message));
  } else {
    sender.publisher->publish(*message);
  }
}

void DeclaredNode::ask(Asker & asker)
{
  const std::lock_guard lock(sending_);
  if (!is_sending_) {
    return;
  }
  auto request = std::make_shared<Service::Request>();
  const auto id = asker.plan.id;
  request->client = static_cast<std::uint32_t>(id);
  request->tracking_number = static_cast<std::uint64_t>(asker.sent);
  request->data.resize(asker.plan.size_bytes);
  ++asker.sent;
  request->sent_ns = monotonic_ns();
  asker.client->async_send_request(
    request,
    [this, id](rclcpp::Client<Service>::SharedFuture future) {
      const auto response = future.get();
      const auto number = static_cast<std::int64_t>(response->tracking_number);
      samples_.add({id, id, number, response->sent_ns, monotonic_ns()});
    });
}

void DeclaredNode::receive(std::int64_t receiver, const Message & message)
{
  const auto now_ns = monotonic_ns();
  samples_.add(
    {receiver, message.publisher, static_cast<std::int64_t>(message.tracking_number),
      message.sent_ns, now_ns});
}

SentCounts DeclaredNode::sent() const
{
  const std::lock_guard lock(sending_);
  SentCounts counts;
  for (const auto & each : senders_) {
    counts[each->plan.end.id] = each->sent;
  }
  for (const auto & each : askers_) {
    counts[each->plan.id] = each->sent;
  }
  return counts;
}

bool DeclaredNode::has_all(const SentCounts & sent) const
{
  const auto has = [this, &sent](std::int64_t receiver, std::int64_t sender) {
      const auto count = sent.find(sender);
      return count == sent.end() || samples_.has_all(receiver, sender, count->second);
    };
  return std::ranges::all_of(
    subscription_plans_, [&has](const SubscriptionPlan & plan) {
      return std::ranges::all_of(
        plan.writers, [&](std::int64_t writer) {return has(plan.end.id, writer);});
    }) && std::ranges::all_of(
    askers_, [&has](const auto & each) {return has(each->plan.id, each->plan.id);});
}

}  // namespace ldos_topology
