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


#ifndef ARM_HPP_
#define ARM_HPP_

#include <string>

#include <moveit/utils/robot_model_test_utils.hpp>
#include <moveit_msgs/msg/constraints.hpp>

namespace ldos_planner
{

inline const std::string group = "arm";

/// An arm of three joints.
inline moveit::core::RobotModelPtr make_arm()
{
  moveit::core::RobotModelBuilder builder("robot", "base");
  builder.addChain("base->upper->lower->tip", "revolute");
  builder.addGroupChain("base", "tip", group);
  return builder.build();
}

/// All joints within 1 mrad of a position.
inline moveit_msgs::msg::Constraints joints_at(double position)
{
  const auto arm = make_arm();
  moveit_msgs::msg::Constraints goal;
  for (const auto & name : arm->getJointModelGroup(group)->getVariableNames()) {
    auto & joint = goal.joint_constraints.emplace_back();
    joint.joint_name = name;
    joint.position = position;
    joint.tolerance_above = joint.tolerance_below = 1e-3;
    joint.weight = 1.0;
  }
  return goal;
}

}  // namespace ldos_planner

#endif  // ARM_HPP_
