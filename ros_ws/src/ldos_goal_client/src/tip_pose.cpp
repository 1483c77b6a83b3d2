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

#include "ldos_goal_client/tip_pose.hpp"

#include <tf2/exceptions.h>
#include <tf2/time.h>

#include <optional>
#include <string>
#include <utility>

#include <geometry_msgs/msg/transform_stamped.hpp>

namespace ldos_goal_client
{
namespace
{

constexpr std::int64_t ns_per_s = 1'000'000'000;
/// A transform that arrives after a result may show the arm this long before it.
constexpr std::int64_t delivery_ns = 20'000'000;

}  // namespace

TipPose::TipPose(rclcpp::Node & node, std::string base_frame)
: base_frame_(std::move(base_frame)), buffer_(node.get_clock()), listener_(buffer_, &node)
{}

void TipPose::expect_after_now(const std::string & link)
{
  link_ = link;
  const auto known = latest();
  too_old_ns_ = known ? std::optional(known->stamp_ns + delivery_ns) : std::nullopt;
}

std::optional<Pose> TipPose::newer() const
{
  const auto known = latest();
  if (!known || (too_old_ns_ && known->stamp_ns <= *too_old_ns_)) {
    return std::nullopt;
  }
  return known->pose;
}

std::optional<TipPose::Stamped> TipPose::latest() const
{
  try {
    const auto transform = buffer_.lookupTransform(base_frame_, link_, tf2::TimePointZero);
    const auto & stamp = transform.header.stamp;
    const auto & p = transform.transform.translation;
    const auto & q = transform.transform.rotation;
    return Stamped{
      stamp.sec * ns_per_s + stamp.nanosec, make_pose({p.x, p.y, p.z}, {q.x, q.y, q.z, q.w})};
  } catch (const tf2::TransformException &) {
    // Not connected yet, which is treated as unknown.
    return std::nullopt;
  } catch (const InvalidGoal &) {
    return std::nullopt;
  }
}

}  // namespace ldos_goal_client
