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

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ldos_topology/plan.hpp"

namespace
{

nlohmann::json plan_of_one_node()
{
  return nlohmann::json::parse(
    R"({"samples": "s", "intra_process": true, "sampling_ns": 500, "nodes": [
      {"name": "n", "namespace": "/a", "executor": 2, "services": ["/t"],
       "publishers": [{"id": 1, "topic": "/p", "size_bytes": 8, "period_ns": 10, "readers": 3,
                       "by_unique_ptr": true,
                       "qos": {"depth": 4, "reliable": false, "transient_local": true}}],
       "subscriptions": [{"id": 2, "topic": "/p", "writers": [1], "by_unique_ptr": false,
                          "qos": {"depth": 5, "reliable": true, "transient_local": false}}],
       "clients": [{"id": 3, "service": "/t", "size_bytes": 9, "period_ns": 11}]}]})");
}

}  // namespace

TEST(Plan, HasTheContentOfTheFile)
{
  const auto plan = ldos_topology::decode_plan(plan_of_one_node());
  EXPECT_TRUE(plan.intra_process);
  EXPECT_EQ(plan.sampling_ns, 500);
  ASSERT_EQ(plan.nodes.size(), 1u);
  const auto & node = plan.nodes.front();
  EXPECT_EQ(node.executor, 2);
  EXPECT_EQ(node.publishers.at(0).readers, 3u);
  EXPECT_EQ(node.publishers.at(0).end.qos.reliability(), rclcpp::ReliabilityPolicy::BestEffort);
  EXPECT_EQ(node.publishers.at(0).end.qos.durability(), rclcpp::DurabilityPolicy::TransientLocal);
  EXPECT_EQ(node.subscriptions.at(0).end.qos.depth(), 5u);
  EXPECT_EQ(node.subscriptions.at(0).writers, std::vector<std::int64_t>{1});
  EXPECT_EQ(node.clients.at(0).period_ns, 11);
  EXPECT_EQ(node.services.at(0), "/t");
}

TEST(Plan, MissingKeyIsRefused)
{
  auto object = plan_of_one_node();
  object["nodes"][0].erase("clients");
  EXPECT_THROW(ldos_topology::decode_plan(object), nlohmann::json::exception);
}
