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

#ifndef LDOS_GOAL_CLIENT__TIP_POSE_HPP_
#define LDOS_GOAL_CLIENT__TIP_POSE_HPP_

#include <tf2_ros/buffer.h>
#include <tf2_ros/transform_listener.h>

#include <cstdint>
#include <optional>
#include <string>

#include <rclcpp/rclcpp.hpp>

#include "ldos_goal_client/goal.hpp"

namespace ldos_goal_client
{

/// The pose of a link, from /tf, after a given time.
class TipPose
{
public:
  TipPose(rclcpp::Node & node, std::string base_frame);

  /// Ignores all transforms that are known now.
  void expect_after_now(const std::string & link);

  /// The link's pose in the base frame, once a newer transform is known.
  ///
  /// Transforms are compared by their own stamps, so that their clock does not matter.
  std::optional<Pose> newer() const;

private:
  struct Stamped
  {
    std::int64_t stamp_ns;
    Pose pose;
  };

  std::optional<Stamped> latest() const;

  std::string base_frame_;
  std::string link_;
  std::optional<std::int64_t> too_old_ns_;
  tf2_ros::Buffer buffer_;
  tf2_ros::TransformListener listener_;
};

}  // namespace ldos_goal_client

#endif  // LDOS_GOAL_CLIENT__TIP_POSE_HPP_
