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


#ifndef LDOS_PLANNER__GOAL_SAMPLERS_HPP_
#define LDOS_PLANNER__GOAL_SAMPLERS_HPP_

#include <optional>
#include <string>

#include <moveit/constraint_samplers/constraint_sampler_allocator.hpp>

#include "ldos_planner/seed.hpp"

namespace ldos_planner
{

/// Creates samplers of goals with seeded random numbers, only for the thread that
/// requests them, while it has one of the two guards below; otherwise MoveIt creates its own.
class GoalSamplers : public constraint_samplers::ConstraintSamplerAllocator
{
public:
  bool canService(
    const planning_scene::PlanningSceneConstPtr & scene, const std::string & group,
    const moveit_msgs::msg::Constraints & goal) const override;

  constraint_samplers::ConstraintSamplerPtr alloc(
    const planning_scene::PlanningSceneConstPtr & scene, const std::string & group,
    const moveit_msgs::msg::Constraints & goal) override;
};

/// Goals made on this thread get samplers of this seed.
class SeededGoals
{
public:
  explicit SeededGoals(Seed seed);
  ~SeededGoals();
  SeededGoals(const SeededGoals &) = delete;
  SeededGoals & operator=(const SeededGoals &) = delete;
};

/// Goals made on this thread get samplers that find nothing.
class IdleGoals
{
public:
  IdleGoals();
  ~IdleGoals();
  IdleGoals(const IdleGoals &) = delete;
  IdleGoals & operator=(const IdleGoals &) = delete;
};

}  // namespace ldos_planner

#endif  // LDOS_PLANNER__GOAL_SAMPLERS_HPP_
