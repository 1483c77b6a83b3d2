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

#ifndef LDOS_GOAL_CLIENT__MOVE_REQUEST_HPP_
#define LDOS_GOAL_CLIENT__MOVE_REQUEST_HPP_

#include <optional>
#include <string>

#include <moveit_msgs/action/move_group.hpp>
#include <moveit_msgs/msg/constraints.hpp>

#include "ldos_goal_client/goal.hpp"
#include "ldos_goal_client/motion.hpp"
#include "ldos_goal_client/move_command.hpp"

namespace ldos_goal_client
{

/// The planning group and its base frame.
struct Planner
{
  std::string group;
  std::string base_frame;
};

/// Goal constraints: a sphere of 0.1 mm and rotations of 1 mrad, or
/// joints within 1 mrad, as the embedded stack's client sends them.
moveit_msgs::msg::Constraints to_constraints(const Goal & goal, const std::string & base_frame);

/// The action's goal: plan once, and execute unless the command only plans. A seed ends the constraints' name, where
/// ldos_planner finds it and other planners ignore it: `reach#ldos_seed=7`.
moveit_msgs::action::MoveGroup::Goal to_request(
  const MoveCommand & command, const Planner & planner);

/// The trajectory in a result; none if nothing was planned.
std::optional<Plan> plan_of(const moveit_msgs::action::MoveGroup::Result & result);

}  // namespace ldos_goal_client

#endif  // LDOS_GOAL_CLIENT__MOVE_REQUEST_HPP_
