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

#include <cmath>
#include <string>
#include <vector>

#include "commands.hpp"
#include "ldos_goal_client/move_request.hpp"

using ldos_goal_client::Goal;
using ldos_goal_client::Joints;
using ldos_goal_client::MoveCommand;
using ldos_goal_client::Planner;
using ldos_goal_client::good_command;
using ldos_goal_client::parse_command;
using ldos_goal_client::plan_of;
using ldos_goal_client::to_constraints;
using ldos_goal_client::to_request;

namespace
{

const Planner planner{"arm", "base"};

MoveCommand command()
{
  return parse_command(good_command().dump());
}

}  // namespace

TEST(MoveRequest, HasTheCommandsSettings)
{
  const auto request = to_request(command(), planner).request;
  EXPECT_EQ(request.group_name, "arm");
  EXPECT_EQ(request.pipeline_id, "");
  EXPECT_EQ(request.planner_id, "RRTConnectkConfigDefault");
  EXPECT_EQ(request.num_planning_attempts, 1);
  EXPECT_EQ(request.allowed_planning_time, 5.0);
  EXPECT_EQ(request.max_velocity_scaling_factor, 0.5);
  EXPECT_EQ(request.max_acceleration_scaling_factor, 0.25);
}

TEST(MoveRequest, NamesItsGoalAndTheSeed)
{
  auto seeded = command();
  EXPECT_EQ(to_request(seeded, planner).request.goal_constraints[0].name, "reach#ldos_seed=7");
  seeded.seed.reset();
  EXPECT_EQ(to_request(seeded, planner).request.goal_constraints[0].name, "reach");
}

TEST(MoveRequest, LeavesThePlanningSceneAsItIs)
{
  const auto options = to_request(command(), planner).planning_options;
  EXPECT_FALSE(options.plan_only);
  EXPECT_TRUE(options.planning_scene_diff.is_diff);
  EXPECT_TRUE(options.planning_scene_diff.robot_state.is_diff);
}

TEST(MoveRequest, OnlyPlansIfTheCommandDoes)
{
  auto planned = command();
  planned.plan_only = true;
  EXPECT_TRUE(to_request(planned, planner).planning_options.plan_only);
}

TEST(MoveRequest, APoseIsASphereAndARotation)
{
  const auto goals = to_request(command(), planner).request.goal_constraints;
  ASSERT_EQ(goals.size(), 1U);
  ASSERT_EQ(goals[0].position_constraints.size(), 1U);
  const auto & position = goals[0].position_constraints[0];
  EXPECT_EQ(position.header.frame_id, "base");
  EXPECT_EQ(position.link_name, "tip");
  ASSERT_EQ(position.constraint_region.primitives.size(), 1U);
  EXPECT_EQ(position.constraint_region.primitives[0].type, shape_msgs::msg::SolidPrimitive::SPHERE);
  ASSERT_EQ(position.constraint_region.primitives[0].dimensions.size(), 1U);
  EXPECT_EQ(position.constraint_region.primitives[0].dimensions[0], 1e-4);
  ASSERT_EQ(position.constraint_region.primitive_poses.size(), 1U);
  EXPECT_EQ(position.constraint_region.primitive_poses[0].position.x, 0.4);
  EXPECT_EQ(position.constraint_region.primitive_poses[0].position.y, 0.2);
  EXPECT_EQ(position.constraint_region.primitive_poses[0].position.z, 0.5);
  EXPECT_EQ(position.constraint_region.primitive_poses[0].orientation.w, 1.0);
  EXPECT_EQ(position.weight, 1.0);

  ASSERT_EQ(goals[0].orientation_constraints.size(), 1U);
  const auto & rotation = goals[0].orientation_constraints[0];
  EXPECT_EQ(rotation.header.frame_id, "base");
  EXPECT_EQ(rotation.link_name, "tip");
  EXPECT_NEAR(rotation.orientation.x, std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(rotation.orientation.y, std::sqrt(0.5), 1e-12);
  EXPECT_EQ(rotation.orientation.z, 0.0);
  EXPECT_EQ(rotation.orientation.w, 0.0);
  EXPECT_EQ(rotation.absolute_x_axis_tolerance, 1e-3);
  EXPECT_EQ(rotation.absolute_y_axis_tolerance, 1e-3);
  EXPECT_EQ(rotation.absolute_z_axis_tolerance, 1e-3);
  EXPECT_EQ(rotation.weight, 1.0);
  EXPECT_TRUE(goals[0].joint_constraints.empty());
}

TEST(MoveRequest, JointsAreConstrainedOneByOne)
{
  const Goal goal{"bent", "tip", Joints{{"a", 0.5}, {"b", -0.25}}};
  const auto constraints = to_constraints(goal, "base");
  EXPECT_EQ(constraints.name, "bent");
  ASSERT_EQ(constraints.joint_constraints.size(), 2U);
  EXPECT_EQ(constraints.joint_constraints[1].joint_name, "b");
  EXPECT_EQ(constraints.joint_constraints[1].position, -0.25);
  EXPECT_EQ(constraints.joint_constraints[1].tolerance_above, 1e-3);
  EXPECT_EQ(constraints.joint_constraints[1].tolerance_below, 1e-3);
  EXPECT_EQ(constraints.joint_constraints[1].weight, 1.0);
  EXPECT_TRUE(constraints.position_constraints.empty());
  EXPECT_TRUE(constraints.orientation_constraints.empty());
}

TEST(MoveRequest, StartsAtGivenOrPresentJoints)
{
  auto begun = command();
  const auto given = to_request(begun, planner).request.start_state;
  EXPECT_TRUE(given.is_diff);
  EXPECT_EQ(given.joint_state.name, std::vector<std::string>{"joint_a"});
  EXPECT_EQ(given.joint_state.position, std::vector<double>{0.5});
  begun.start.reset();
  const auto present = to_request(begun, planner).request.start_state;
  EXPECT_TRUE(present.is_diff);
  EXPECT_TRUE(present.joint_state.name.empty());
}

TEST(PlanOfResult, IsTheLastPointsTime)
{
  moveit_msgs::action::MoveGroup::Result result;
  EXPECT_FALSE(plan_of(result));
  auto & points = result.planned_trajectory.joint_trajectory.points;
  points.resize(3);
  points.back().time_from_start.sec = 5;
  points.back().time_from_start.nanosec = 250'000'001;
  const auto plan = plan_of(result);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->duration_ns, 5'250'000'001);
  EXPECT_EQ(plan->points, 3U);
}
