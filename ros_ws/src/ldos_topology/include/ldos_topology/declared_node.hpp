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

#ifndef LDOS_TOPOLOGY__DECLARED_NODE_HPP_
#define LDOS_TOPOLOGY__DECLARED_NODE_HPP_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <ldos_topology_msgs/msg/stamped.hpp>
#include <ldos_topology_msgs/srv/stamped.hpp>
#include <rclcpp/rclcpp.hpp>

#include "ldos_topology/plan.hpp"
#include "ldos_topology/samples.hpp"

namespace ldos_topology
{

/// Messages that were sent, by the id of the publisher or client.
using SentCounts = std::map<std::int64_t, std::int64_t>;

/// A declared node of a topology, which sends between begin() and end().
class DeclaredNode
{
public:
  DeclaredNode(const NodePlan & plan, bool intra_process, SampleFile & samples);

  rclcpp::Node::SharedPtr node() const {return node_;}

  /// Describes endpoints that have not discovered their peers.
  std::vector<std::string> unmatched() const;

  /// Starts all timers.
  void begin();

  /// Stops sending.
  void end();

  /// Numbers of sent messages; to be called after end().
  SentCounts sent() const;

  /// True if all messages to this node arrived.
  bool has_all(const SentCounts & sent) const;

private:
  using Message = ldos_topology_msgs::msg::Stamped;
  using Service = ldos_topology_msgs::srv::Stamped;

  struct Sender
  {
    PublisherPlan plan;
    rclcpp::Publisher<Message>::SharedPtr publisher;
    std::int64_t sent{0};
  };

  struct Asker
  {
    ClientPlan plan;
    rclcpp::Client<Service>::SharedPtr client;
    std::int64_t sent{0};
  };

  void subscribe(const SubscriptionPlan & plan);
  void serve(const std::string & service);
  void publish(Sender & sender);
  void ask(Asker & asker);
  void receive(std::int64_t receiver, const Message & message);

  rclcpp::Node::SharedPtr node_;
  SampleFile & samples_;
  /// Held while a message is sent, so that end() has final numbers.
  mutable std::mutex sending_;
  bool is_sending_{false};
  std::vector<std::unique_ptr<Sender>> senders_;
  std::vector<std::unique_ptr<Asker>> askers_;
  std::vector<SubscriptionPlan> subscription_plans_;
  std::vector<rclcpp::Subscription<Message>::SharedPtr> subscriptions_;
  std::vector<rclcpp::Service<Service>::SharedPtr> services_;
  std::vector<rclcpp::TimerBase::SharedPtr> timers_;
};

}  // namespace ldos_topology

#endif  // LDOS_TOPOLOGY__DECLARED_NODE_HPP_
