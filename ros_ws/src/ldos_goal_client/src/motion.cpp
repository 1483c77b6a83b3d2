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

#include "ldos_goal_client/motion.hpp"

#include <optional>
#include <string>
#include <utility>

#include "ldos_tracepoints/tracepoints.hpp"

namespace ldos_goal_client
{
namespace
{

constexpr double ns_per_s = 1e9;

}  // namespace

void TraceMarkers::trial_begin(
  const std::string & goal_id, const std::string & scenario, std::uint32_t index)
{
  ldos_tracepoints::trial_begin(goal_id.c_str(), scenario.c_str(), index);
}

void TraceMarkers::phase(const std::string & goal_id, Phase phase)
{
  ldos_tracepoints::phase(goal_id.c_str(), name_of(phase));
}

void TraceMarkers::plan(const std::string & goal_id, const Plan & plan)
{
  ldos_tracepoints::plan(goal_id.c_str(), plan.duration_ns, plan.points);
}

void TraceMarkers::trial_end(const std::string & goal_id, std::int32_t error_code)
{
  ldos_tracepoints::trial_end(goal_id.c_str(), error_code);
}

Motion::Motion(MoveCommand command, Markers & markers, Clock clock)
: command_(std::move(command)), markers_(markers), clock_(std::move(clock)),
  deadline_ns_(clock_() + static_cast<std::int64_t>(command_.timeout_s * ns_per_s))
{}

void Motion::begin()
{
  if (command_.trial) {
    markers_.trial_begin(command_.goal_id, command_.trial->scenario, command_.trial->index);
  }
}

void Motion::enter(Phase phase)
{
  if (stamps_.enter(phase, clock_()) && is_marked()) {
    markers_.phase(command_.goal_id, phase);
  }
}

void Motion::end(std::int32_t error_code, const std::optional<Plan> & plan)
{
  enter(Phase::result);
  if (plan && is_marked()) {
    markers_.plan(command_.goal_id, *plan);
  }
  if (command_.trial) {
    markers_.trial_end(command_.goal_id, error_code);
  }
}

bool Motion::is_marked() const
{
  return command_.trial || command_.plan_only;
}

bool Motion::is_overdue() const
{
  return clock_() > deadline_ns_;
}

}  // namespace ldos_goal_client
