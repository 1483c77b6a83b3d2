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

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <moveit/planning_interface/planning_interface.hpp>
#include <moveit/planning_scene/planning_scene.hpp>
#include <pluginlib/class_loader.hpp>
#include <rclcpp/rclcpp.hpp>

#include "arm.hpp"

namespace
{

using ldos_planner::group;
using moveit_msgs::msg::MoveItErrorCodes;
using planning_interface::MotionPlanRequest;
using planning_interface::MotionPlanResponse;
using planning_interface::PlannerManager;

class PlannerTest : public ::testing::Test
{
protected:
  static void SetUpTestSuite() {rclcpp::init(0, nullptr);}
  static void TearDownTestSuite() {rclcpp::shutdown();}

  /// Loads the plugin, with these parameters, as MoveIt's pipeline does.
  std::shared_ptr<PlannerManager> load(const std::vector<rclcpp::Parameter> & parameters = {})
  {
    const auto options = rclcpp::NodeOptions().parameter_overrides(parameters)
      .automatically_declare_parameters_from_overrides(true);
    const auto node = std::make_shared<rclcpp::Node>("planner_test", options);
    const auto planner = loader_.createSharedInstance("ldos_planner/OMPLPlanner");
    EXPECT_TRUE(planner->initialize(model_, node, "ompl"));
    return planner;
  }

  static MotionPlanRequest request(const std::string & name)
  {
    MotionPlanRequest wanted;
    wanted.group_name = group;
    wanted.num_planning_attempts = 1;
    wanted.allowed_planning_time = 5.0;
    wanted.start_state.is_diff = true;
    wanted.goal_constraints = {ldos_planner::joints_at(1.0)};
    wanted.goal_constraints[0].name = name;
    return wanted;
  }

  /// The joints of a plan, point by point; empty if there is none.
  std::vector<double> plan(const PlannerManager & planner, const std::string & name) const
  {
    MoveItErrorCodes code;
    const auto context = planner.getPlanningContext(scene_, request(name), code);
    MotionPlanResponse response;
    context->solve(response);
    std::vector<double> joints;
    if (response.error_code.val == MoveItErrorCodes::SUCCESS) {
      for (std::size_t at = 0; at < response.trajectory->getWayPointCount(); ++at) {
        const auto & state = response.trajectory->getWayPoint(at);
        const double * const positions = state.getVariablePositions();
        joints.insert(joints.end(), positions, positions + state.getVariableCount());
      }
    }
    return joints;
  }

  pluginlib::ClassLoader<PlannerManager> loader_{
    "moveit_core", "planning_interface::PlannerManager"};
  moveit::core::RobotModelPtr model_ = ldos_planner::make_arm();
  planning_scene::PlanningScenePtr scene_ =
    std::make_shared<planning_scene::PlanningScene>(model_);
};

TEST_F(PlannerTest, PlansTheSameFromTheSameSeed)
{
  const auto planner = load();
  const auto first = plan(*planner, "reach#ldos_seed=7");
  ASSERT_FALSE(first.empty());
  EXPECT_NE(plan(*planner, "reach#ldos_seed=8"), first);
  EXPECT_EQ(plan(*planner, "reach#ldos_seed=7"), first);
  EXPECT_EQ(plan(*load(), "other#ldos_seed=7"), first) << "in another process of the stack";
}

TEST_F(PlannerTest, PlansAsMoveItDoesWithoutASeed)
{
  const auto planner = load();
  const auto first = plan(*planner, "reach");
  ASSERT_FALSE(first.empty());
  EXPECT_NE(plan(*planner, "reach"), first);
}

TEST_F(PlannerTest, ReportsWhyAGoalCannotBePlanned)
{
  auto wanted = request("reach#ldos_seed=7");
  wanted.goal_constraints[0].joint_constraints.clear();
  MoveItErrorCodes code;
  EXPECT_FALSE(load()->getPlanningContext(scene_, wanted, code));
  EXPECT_EQ(code.val, MoveItErrorCodes::INVALID_GOAL_CONSTRAINTS);
}

TEST_F(PlannerTest, TakesLongerWithAnInjectedDelay)
{
  const auto planner = load({rclcpp::Parameter("ompl.ldos_planner.planning_delay_ms", 50.0)});
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE(plan(*planner, "reach#ldos_seed=7").empty());
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(50));
}

}  // namespace
