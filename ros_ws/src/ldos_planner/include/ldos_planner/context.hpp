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


#ifndef LDOS_PLANNER__CONTEXT_HPP_
#define LDOS_PLANNER__CONTEXT_HPP_

#include <chrono>
#include <optional>

#include <moveit/ompl_interface/model_based_planning_context.hpp>
#include <moveit/planning_interface/planning_interface.hpp>

#include "ldos_planner/seed.hpp"

namespace ldos_planner
{

/// Time added to every plan, as an injected fault.
struct PlantedDelay
{
  double delay_ms{};
  /// Delay as a share of the time since the request: 0.15 makes planning take 15 % longer.
  double share{};
};

using Clock = std::chrono::steady_clock;

/// MoveIt's context for one request, seeded if it has a seed. Emits `ldos:cpu_speed` on the
/// thread that plans, before the search, and `ldos:planning_stage` for each stage of a plan found.
class Context : public planning_interface::PlanningContext
{
public:
  Context(
    ompl_interface::ModelBasedPlanningContextPtr moveits, std::optional<Seed> seed,
    const PlantedDelay & delay, Clock::time_point began);

  void solve(planning_interface::MotionPlanResponse & response) override;
  void solve(planning_interface::MotionPlanDetailedResponse & response) override;
  bool terminate() override;
  void clear() override;

private:
  template<typename Response>
  void solve_measured(Response & response);
  /// MoveIt gives the stages' durations only afterwards; they are assumed to be consecutive.
  void report_stages(Clock::time_point ready) const;
  void delay() const;

  ompl_interface::ModelBasedPlanningContextPtr moveits_;
  std::optional<Seed> seed_;
  PlantedDelay delay_;
  Clock::time_point began_;
  bool is_solved_ = false;  // false while the planner manager keeps the context's goal
};

}  // namespace ldos_planner

#endif  // LDOS_PLANNER__CONTEXT_HPP_
