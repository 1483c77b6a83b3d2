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

#ifndef LDOS_TOPOLOGY__PLAN_HPP_
#define LDOS_TOPOLOGY__PLAN_HPP_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <rclcpp/qos.hpp>

namespace ldos_topology
{

/// A sender or receiver of messages of one topic.
struct TopicEnd
{
  /// Its number in samples, unique in the topology.
  std::int64_t id;
  std::string topic;
  rclcpp::QoS qos;
  /// True if messages are passed as a unique_ptr, else as shared or by reference.
  bool by_unique_ptr;
};

struct PublisherPlan
{
  TopicEnd end;
  std::size_t size_bytes;
  std::int64_t period_ns;
  /// Subscriptions to be matched before anything is sent.
  std::size_t readers;
};

struct SubscriptionPlan
{
  TopicEnd end;
  /// Publishers of its topic.
  std::vector<std::int64_t> writers;
};

struct ClientPlan
{
  std::int64_t id;
  std::string service;
  std::size_t size_bytes;
  std::int64_t period_ns;
};

struct NodePlan
{
  std::string name;
  std::string name_space;
  /// Nodes with the same number share an executor.
  std::int64_t executor;
  std::vector<PublisherPlan> publishers;
  std::vector<SubscriptionPlan> subscriptions;
  std::vector<ClientPlan> clients;
  std::vector<std::string> services;
};

/// The plan of one process of a topology.
struct Plan
{
  /// File for the latencies of its messages.
  std::string samples;
  bool intra_process;
  /// Interval between readings of the process's resources.
  std::int64_t sampling_ns;
  std::vector<NodePlan> nodes;
};

/// Reads a plan; throws nlohmann::json::exception if a key is missing or of another type.
Plan decode_plan(const nlohmann::json & object);

}  // namespace ldos_topology

#endif  // LDOS_TOPOLOGY__PLAN_HPP_
