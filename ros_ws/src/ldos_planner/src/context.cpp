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


#include "ldos_planner/context.hpp"

#include <thread>
#include <utility>

#include <moveit_msgs/msg/move_it_error_codes.hpp>

#include "ldos_planner/fixed_work.hpp"
#include "ldos_planner/seeding.hpp"
#include "ldos_tracepoints/tracepoints.hpp"

namespace ldos_planner
{

using moveit_msgs::msg::MoveItErrorCodes;

Context::Context(
  ompl_interface::ModelBasedPlanningContextPtr moveits, std::optional<Seed> seed,
  const PlantedDelay & delay, Clock::time_point began)
: PlanningContext(moveits->getName(), moveits->getGroupName()),
  moveits_(std::move(moveits)), seed_(seed), delay_(delay), began_(began)
{
  setPlanningScene(moveits_->getPlanningScene());
  setMotionPlanRequest(moveits_->getMotionPlanRequest());
}

void Context::solve(planning_interface::MotionPlanResponse & response)
{
  solve_measured(response);
}

void Context::solve(planning_interface::MotionPlanDetailedResponse & response)
{
  solve_measured(response);
}

template<typename Response>
void Context::solve_measured(Response & response)
{
  ldos_tracepoints::cpu_speed(time_fixed_work());
  if (seed_) {
    if (std::exchange(is_solved_, true)) {
      stop_sampling(moveits_->getOMPLSimpleSetup()->getGoal());
    }
    response.error_code = seed_context(*moveits_, *seed_);
    if (response.error_code.val != MoveItErrorCodes::SUCCESS) {
      return;
    }
  }
  const auto ready = Clock::now();
  moveits_->solve(response);
  if (response.error_code.val == MoveItErrorCodes::SUCCESS) {
    report_stages(ready);
  }
  delay();
}

void Context::report_stages(Clock::time_point ready) const
{
  const auto now = Clock::now();
  const auto report = [now](const char * name, Clock::time_point end) {
      ldos_tracepoints::planning_stage(name, std::chrono::nanoseconds(now - end).count());
    };
  const auto seconds = [](double value) {
      return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(value));
    };
  auto end = ready + seconds(moveits_->getLastPlanTime());
  report("request adapters", began_);
  report("goals", ready);
  report("search", end);
  if (moveits_->simplifySolutions()) {
    end += seconds(moveits_->getLastSimplifyTime());
    report("simplification", end);
  }
  report("interpolation", now);
}

void Context::delay() const
{
  const std::chrono::duration<double> taken = Clock::now() - began_;
  const std::chrono::duration<double, std::milli> fixed(delay_.delay_ms);
  const auto planted = fixed + delay_.share * taken;
  if (planted > planted.zero()) {
    std::this_thread::sleep_for(planted);
    ldos_tracepoints::planning_stage("planted delay", 0);
  }
}

bool Context::terminate()
{
  return moveits_->terminate();
}

void Context::clear()
{
  moveits_->clear();
}

}  // namespace ldos_planner
