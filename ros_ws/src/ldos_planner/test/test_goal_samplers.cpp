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

#include <memory>
#include <thread>
#include <vector>

#include <moveit/planning_scene/planning_scene.hpp>

#include "arm.hpp"
#include "ldos_planner/goal_samplers.hpp"

using ldos_planner::GoalSamplers;
using ldos_planner::IdleGoals;
using ldos_planner::Seed;
using ldos_planner::SeededGoals;
using ldos_planner::group;
using ldos_planner::joints_at;

namespace
{

class GoalSamplersTest : public ::testing::Test
{
protected:
  bool serves(const moveit_msgs::msg::Constraints & goal) const
  {
    return samplers_.canService(scene_, group, goal);
  }

  /// Joints sampled for a goal; none if nothing was found.
  std::vector<double> sampled()
  {
    moveit::core::RobotState state(scene_->getRobotModel());
    state.setToDefaultValues();
    const auto sampler = samplers_.alloc(scene_, group, joints_at(0.5));
    std::vector<double> joints;
    if (sampler->sample(state, 1)) {
      state.copyJointGroupPositions(group, joints);
    }
    return joints;
  }

  std::vector<double> sampled(Seed seed)
  {
    const SeededGoals seeded(seed);
    return sampled();
  }

  planning_scene::PlanningSceneConstPtr scene_ =
    std::make_shared<planning_scene::PlanningScene>(ldos_planner::make_arm());
  GoalSamplers samplers_;
};

TEST_F(GoalSamplersTest, SampleTheSameGoalFromTheSameSeed)
{
  EXPECT_EQ(sampled(7), sampled(7));
  EXPECT_NE(sampled(7), sampled(8));
  ASSERT_EQ(sampled(7).size(), 3U);
  EXPECT_NEAR(sampled(7)[0], 0.5, 1e-3);
}

TEST_F(GoalSamplersTest, FindNothingWhileIdle)
{
  const IdleGoals idle;
  EXPECT_TRUE(serves(joints_at(0.5)));
  EXPECT_TRUE(sampled().empty());
}

TEST_F(GoalSamplersTest, ServeOnlyOnRequest)
{
  EXPECT_FALSE(serves(joints_at(0.5)));
  {
    const SeededGoals seeded(7);
    EXPECT_TRUE(serves(joints_at(0.5)));
    bool is_served_elsewhere = true;
    std::jthread([&]() {is_served_elsewhere = serves(joints_at(0.5));}).join();
    EXPECT_FALSE(is_served_elsewhere);
  }
  EXPECT_FALSE(serves(joints_at(0.5)));
}

TEST_F(GoalSamplersTest, LeaveOtherGoalsToMoveIt)
{
  const SeededGoals seeded(7);
  auto seen = joints_at(0.5);
  seen.visibility_constraints.resize(1);
  EXPECT_FALSE(serves(seen));
  moveit_msgs::msg::Constraints pose;
  pose.position_constraints.resize(1);
  pose.orientation_constraints.resize(1);
  EXPECT_FALSE(serves(pose)) << "this arm has no solver";
}

}  // namespace
