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

#include "ldos_topology/plan.hpp"

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace ldos_topology
{
namespace
{

using nlohmann::json;

rclcpp::QoS decode_qos(const json & object)
{
  rclcpp::QoS qos(rclcpp::KeepLast(object.at("depth").get<std::size_t>()));
  if (!object.at("reliable").get<bool>()) {
    qos.best_effort();
  }
  if (object.at("transient_local").get<bool>()) {
    qos.transient_local();
  }
  return qos;
}

TopicEnd decode_end(const json & object)
{
  return {
    object.at("id").get<std::int64_t>(), object.at("topic").get<std::string>(),
    decode_qos(object.at("qos")), object.at("by_unique_ptr").get<bool>()};
}

PublisherPlan decode_publisher(const json & object)
{
  return {
    decode_end(object), object.at("size_bytes").get<std::size_t>(),
    object.at("period_ns").get<std::int64_t>(), object.at("readers").get<std::size_t>()};
}

SubscriptionPlan decode_subscription(const json & object)
{
  return {decode_end(object), object.at("writers").get<std::vector<std::int64_t>>()};
}

ClientPlan decode_client(const json & object)
{
  return {
    object.at("id").get<std::int64_t>(), object.at("service").get<std::string>(),
    object.at("size_bytes").get<std::size_t>(), object.at("period_ns").get<std::int64_t>()};
}

template<typename Decoder>
auto decode_all(const json & list, Decoder decode)
{
  std::vector<decltype(decode(list))> found;
  for (const auto & each : list) {
    found.push_back(decode(each));
  }
  return found;
}

NodePlan decode_node(const json & object)
{
  return {
    object.at("name").get<std::string>(),
    object.at("namespace").get<std::string>(),
    object.at("executor").get<std::int64_t>(),
    decode_all(object.at("publishers"), decode_publisher),
    decode_all(object.at("subscriptions"), decode_subscription),
    decode_all(object.at("clients"), decode_client),
    object.at("services").get<std::vector<std::string>>()};
}

}  // namespace

Plan decode_plan(const json & object)
{
  return {
    object.at("samples").get<std::string>(), object.at("intra_process").get<bool>(),
    object.at("sampling_ns").get<std::int64_t>(), decode_all(object.at("nodes"), decode_node)};
}

}  // namespace ldos_topology
