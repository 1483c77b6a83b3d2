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


#ifndef LDOS_PLANNER__SEEDING_HPP_
#define LDOS_PLANNER__SEEDING_HPP_

#include <moveit/ompl_interface/model_based_planning_context.hpp>
#include <ompl/base/Goal.h>

#include "ldos_planner/seed.hpp"

namespace ldos_planner
{

/// Ends the thread that samples a goal, if it has one; waits up to 10 ms for it. MoveIt's goal destroys its
/// sampler before that thread ends: stop it before.
void stop_sampling(const ompl::base::GoalPtr & goal);

/// Makes the next solution of a context depend only on its request and the seed.
///
/// Everything that uses random numbers is created again from the seed: planner, simplifier, and the
/// samplers of states and of the goal. The goal is sampled once, before the search: OMPL's thread
/// that samples goals during the search would find a number that depends on the free CPU time.
/// The context's goal is replaced: it must be kept elsewhere, or have stopped.
/// @return MoveIt's code for the reason if the goal cannot be used, else success.
moveit_msgs::msg::MoveItErrorCodes seed_context(
  ompl_interface::ModelBasedPlanningContext & context, Seed seed);

}  // namespace ldos_planner

#endif  // LDOS_PLANNER__SEEDING_HPP_
