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


#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <moveit/ompl_interface/ompl_interface.hpp>
#include <moveit/planning_interface/planning_interface.hpp>
#include <ompl/base/Goal.h>
#include <pluginlib/class_list_macros.hpp>
#include <rclcpp/rclcpp.hpp>

#include "ldos_planner/context.hpp"
#include "ldos_planner/goal_samplers.hpp"
#include "ldos_planner/ldos_planner_parameters.hpp"
#include "ldos_planner/ompl_log.hpp"
#include "ldos_planner/seed.hpp"
#include "ldos_planner/seeding.hpp"

namespace ldos_planner
{

using moveit_msgs::msg::MoveItErrorCodes;
using ompl_interface::ModelBasedPlanningContextPtr;
using ompl_interface::OMPLInterface;
using planning_interface::MotionPlanRequest;
using planning_interface::PlannerConfigurationMap;

/// MoveIt's OMPL planners, which give requests with a seed always the same plan.
class PlannerManager : public planning_interface::PlannerManager
{
public:
  ~PlannerManager() override
  {
    stop_sampling(retired_);
  }

  bool initialize(
    const moveit::core::RobotModelConstPtr & model, const rclcpp::Node::SharedPtr & node,
    const std::string & parameter_namespace) override
  {
    parameters_ = std::make_unique<planner::ParamListener>(
      node, parameter_namespace + ".ldos_planner");
    moveits_ = std::make_unique<OMPLInterface>(model, node, parameter_namespace);
    moveits_->getConstraintSamplerManager().registerSamplerAllocator(
      std::make_shared<GoalSamplers>());
    setPlannerConfigurations(moveits_->getPlannerConfigurations());
    return true;
  }

  std::string getDescription() const override
  {
    return "OMPL (seeded)";
  }

  bool canServiceRequest(const MotionPlanRequest & request) const override
  {
    return request.trajectory_constraints.constraints.empty();
  }

  void getPlanningAlgorithms(std::vector<std::string> & names) const override
  {
    names.clear();
    for (const auto & [name, settings] : moveits_->getPlannerConfigurations()) {
      names.push_back(name);
    }
  }

  void setPlannerConfigurations(const PlannerConfigurationMap & configurations) override
  {
    moveits_->setPlannerConfigurations(configurations);
    // MoveIt adds the defaults of groups that have none.
    planning_interface::PlannerManager::setPlannerConfigurations(
      moveits_->getPlannerConfigurations());
  }

  planning_interface::PlanningContextPtr getPlanningContext(
    const planning_scene::PlanningSceneConstPtr & scene, const MotionPlanRequest & request,
    MoveItErrorCodes & code) const override
  {
    const auto began = Clock::now();
    const auto seed = seed_of(request);
    const auto context = seed ?
      idle_context(scene, request, code) : moveits_->getPlanningContext(scene, request, code);
    if (!context) {
      return nullptr;
    }
    const auto params = parameters_->get_params();
    const PlantedDelay delay{params.planning_delay_ms, params.planning_delay_share};
    return std::make_shared<Context>(context, seed, delay, began);
  }

private:
  /// MoveIt's context with a goal that samples nothing: it is replaced by one with a seed.
  ///
  /// Its thread may sleep for 10 ms before it ends. Planning does not wait for it: the goal
  /// is kept until the next request.
  ModelBasedPlanningContextPtr idle_context(
    const planning_scene::PlanningSceneConstPtr & scene, const MotionPlanRequest & request,
    MoveItErrorCodes & code) const
  {
    const IdleGoals idle;
    const std::lock_guard lock(mutex_);
    stop_sampling(retired_);
    auto context = moveits_->getPlanningContext(scene, request, code);
    if (context) {
      retired_ = context->getOMPLSimpleSetup()->getGoal();
    }
    return context;
  }

  OmplLog log_;
  std::unique_ptr<planner::ParamListener> parameters_;
  std::unique_ptr<OMPLInterface> moveits_;
  mutable std::mutex mutex_;
  /// Refers to MoveIt's context, and is therefore destroyed before it.
  mutable ompl::base::GoalPtr retired_;
};

}  // namespace ldos_planner

PLUGINLIB_EXPORT_CLASS(ldos_planner::PlannerManager, planning_interface::PlannerManager)
