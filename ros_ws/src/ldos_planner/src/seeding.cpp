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


#include "ldos_planner/seeding.hpp"

#include <chrono>
#include <thread>

#include <ompl/base/goals/GoalLazySamples.h>
#include <ompl/util/RandomNumbers.h>

#include "ldos_planner/goal_samplers.hpp"
#include "ldos_planner/state_sampler.hpp"

namespace ldos_planner
{
namespace
{

using moveit_msgs::msg::MoveItErrorCodes;
using ompl_interface::ModelBasedPlanningContext;

constexpr std::chrono::microseconds poll{20};

/// Creates the goal again, and waits for its first sample, at most as long as planning may take.
MoveItErrorCodes sample_goal(ModelBasedPlanningContext & context, Seed seed)
{
  const auto & request = context.getMotionPlanRequest();
  const SeededGoals seeded(seed);
  MoveItErrorCodes code;
  code.val = MoveItErrorCodes::FAILURE;
  context.setMaximumGoalSamples(1);
  if (!context.setGoalConstraints(request.goal_constraints, request.path_constraints, &code)) {
    return code;
  }
  const auto deadline = std::chrono::steady_clock::now() +
    std::chrono::duration<double>(request.allowed_planning_time);
  const auto & goal = *context.getOMPLSimpleSetup()->getGoal()->as<ompl::base::GoalLazySamples>();
  while (!goal.hasStates() && goal.isSampling() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(poll);
  }
  code.val = MoveItErrorCodes::SUCCESS;
  return code;
}

}  // namespace

void stop_sampling(const ompl::base::GoalPtr & goal)
{
  if (auto * const lazy = dynamic_cast<ompl::base::GoalLazySamples *>(goal.get())) {
    lazy->stopSampling();
  }
}

MoveItErrorCodes seed_context(ModelBasedPlanningContext & context, Seed seed)
{
  auto & setup = *context.getOMPLSimpleSetup();
  ompl::RNG::setSeed(seed);
  // Setting the allocator again creates a new planner, whose generator gets this seed.
  setup.setPlannerAllocator(setup.getPlannerAllocator());
  seed_samplers(*context.getOMPLStateSpace(), seed);
  return sample_goal(context, seed);
}

}  // namespace ldos_planner
