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

#include "ldos_goal_client/move_request.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include <moveit_msgs/msg/joint_constraint.hpp>
#include <moveit_msgs/msg/orientation_constraint.hpp>
#include <moveit_msgs/msg/position_constraint.hpp>
#include <moveit_msgs/msg/robot_state.hpp>
#include <shape_msgs/msg/solid_primitive.hpp>

namespace ldos_goal_client
{
namespace
{

using moveit_msgs::msg::Constraints;
using moveit_msgs::msg::JointConstraint;
using moveit_msgs::msg::OrientationConstraint;
using moveit_msgs::msg::PositionConstraint;
using moveit_msgs::msg::RobotState;
using shape_msgs::msg::SolidPrimitive;

/// Of move_group's default pipeline.
constexpr const char * planner_id = "RRTConnectkConfigDefault";
constexpr double position_tolerance_m = 1e-4;
constexpr double rotation_tolerance_rad = 1e-3;
constexpr std::int64_t ns_per_s = 1'000'000'000;

JointConstraint joint_constraint(const std::string & name, double position)
{
  JointConstraint constraint;
  constraint.joint_name = name;
  constraint.position = position;
  constraint.tolerance_above = rotation_tolerance_rad;
  constraint.tolerance_below = rotation_tolerance_rad;
  constraint.weight = 1.0;
  return constraint;
}

PositionConstraint position_constraint(
  const std::string & link, const Pose & pose, const std::string & base_frame)
{
  SolidPrimitive sphere;
  sphere.type = SolidPrimitive::SPHERE;
  sphere.dimensions = {position_tolerance_m};
  geometry_msgs::msg::Pose center;
  center.position.x = pose.position[0];
  center.position.y = pose.position[1];
  center.position.z = pose.position[2];
  PositionConstraint constraint;
  constraint.header.frame_id = base_frame;
  constraint.link_name = link;
  constraint.constraint_region.primitives = {sphere};
  constraint.constraint_region.primitive_poses = {center};
  constraint.weight = 1.0;
  return constraint;
}

OrientationConstraint orientation_constraint(
  const std::string & link, const Pose & pose, const std::string & base_frame)
{
  OrientationConstraint constraint;
  constraint.header.frame_id = base_frame;
  constraint.link_name = link;
  constraint.orientation.x = pose.orientation[0];
  constraint.orientation.y = pose.orientation[1];
  constraint.orientation.z = pose.orientation[2];
  constraint.orientation.w = pose.orientation[3];
  constraint.absolute_x_axis_tolerance = rotation_tolerance_rad;
  constraint.absolute_y_axis_tolerance = rotation_tolerance_rad;
  constraint.absolute_z_axis_tolerance = rotation_tolerance_rad;
  constraint.weight = 1.0;
  return constraint;
}

std::string name_with(const std::optional<std::uint32_t> & seed, const std::string & name)
{
  return seed ? name + "#ldos_seed=" + std::to_string(*seed) : name;
}

/// Other joints than the given ones keep their positions.
RobotState start_state(const std::optional<Joints> & joints)
{
  RobotState state;
  state.is_diff = true;
  if (joints) {
    for (const auto & [name, position] : *joints) {
      state.joint_state.name.push_back(name);
      state.joint_state.position.push_back(position);
    }
  }
  return state;
}

}  // namespace

Constraints to_constraints(const Goal & goal, const std::string & base_frame)
{
  Constraints constraints;
  constraints.name = goal.name;
  if (const auto * joints = std::get_if<Joints>(&goal.target)) {
    for (const auto & [name, position] : *joints) {
      constraints.joint_constraints.push_back(joint_constraint(name, position));
    }
    return constraints;
  }
  const auto & pose = std::get<Pose>(goal.target);
  constraints.position_constraints = {position_constraint(goal.link, pose, base_frame)};
  constraints.orientation_constraints = {orientation_constraint(goal.link, pose, base_frame)};
  return constraints;
}

moveit_msgs::action::MoveGroup::Goal to_request(
  const MoveCommand & command, const Planner & planner)
{
  moveit_msgs::action::MoveGroup::Goal goal;
  auto & request = goal.request;
  request.group_name = planner.group;
  request.planner_id = planner_id;
  request.num_planning_attempts = 1;
  request.allowed_planning_time = command.planning_time_s;
  request.max_velocity_scaling_factor = command.velocity_scaling;
  request.max_acceleration_scaling_factor = command.acceleration_scaling;
  request.goal_constraints = {to_constraints(command.goal, planner.base_frame)};
  request.goal_constraints[0].name = name_with(command.seed, command.goal.name);
  request.start_state = start_state(command.start);
  goal.planning_options.plan_only = command.plan_only;
  goal.planning_options.planning_scene_diff.is_diff = true;
  goal.planning_options.planning_scene_diff.robot_state.is_diff = true;
  return goal;
}

std::optional<Plan> plan_of(const moveit_msgs::action::MoveGroup::Result & result)
{
  const auto & points = result.planned_trajectory.joint_trajectory.points;
  if (points.empty()) {
    return std::nullopt;
  }
  const auto & end = points.back().time_from_start;
  return Plan{
    end.sec * ns_per_s + end.nanosec, static_cast<std::uint32_t>(points.size())};
}

}  // namespace ldos_goal_client
