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

#ifndef LDOS_TRACEPOINTS__TRACEPOINTS_HPP_
#define LDOS_TRACEPOINTS__TRACEPOINTS_HPP_

#include <cstdint>

#ifdef LDOS_TRACEPOINTS_ENABLED
#include "ldos_tracepoints/tracepoints.h"
#define LDOS_TRACEPOINTS_FUNCTION inline
#define LDOS_TRACEPOINTS_EMIT(call) call
#else
// An empty constant expression: nothing is left of it in the program.
#define LDOS_TRACEPOINTS_FUNCTION constexpr
#define LDOS_TRACEPOINTS_EMIT(call) static_cast<void>(0)
#endif

/// The markers of pytest-ldos. Each function emits the event `ldos:<its name>`, or does
/// nothing if the package was built without LTTng-UST.
namespace ldos_tracepoints
{

/// True if the functions emit events.
#ifdef LDOS_TRACEPOINTS_ENABLED
inline constexpr bool is_enabled = true;
#else
inline constexpr bool is_enabled = false;
#endif

/// A measured goal begins. `goal_id` is 32 hex characters.
LDOS_TRACEPOINTS_FUNCTION void trial_begin(
  [[maybe_unused]] const char * goal_id, [[maybe_unused]] const char * scenario,
  [[maybe_unused]] std::uint32_t index) noexcept
{
  LDOS_TRACEPOINTS_EMIT(ldos_trial_begin(goal_id, scenario, index));
}

/// A goal enters `phase`: goal_sent, goal_accepted, planning, executing or result.
LDOS_TRACEPOINTS_FUNCTION void phase(
  [[maybe_unused]] const char * goal_id, [[maybe_unused]] const char * phase) noexcept
{
  LDOS_TRACEPOINTS_EMIT(ldos_phase(goal_id, phase));
}

/// Duration and number of points of the trajectory planned for a goal.
LDOS_TRACEPOINTS_FUNCTION void plan(
  [[maybe_unused]] const char * goal_id, [[maybe_unused]] std::int64_t duration_ns,
  [[maybe_unused]] std::uint32_t points) noexcept
{
  LDOS_TRACEPOINTS_EMIT(ldos_plan(goal_id, duration_ns, points));
}

/// A measured goal has ended with MoveIt's `error_code`.
LDOS_TRACEPOINTS_FUNCTION void trial_end(
  [[maybe_unused]] const char * goal_id, [[maybe_unused]] std::int32_t error_code) noexcept
{
  LDOS_TRACEPOINTS_EMIT(ldos_trial_end(goal_id, error_code));
}

/// A controller was updated, with this time and period as its arguments.
LDOS_TRACEPOINTS_FUNCTION void control_cycle(
  [[maybe_unused]] std::uint64_t cycle, [[maybe_unused]] std::int64_t sim_time_ns,
  [[maybe_unused]] std::int64_t period_ns) noexcept
{
  LDOS_TRACEPOINTS_EMIT(ldos_control_cycle(cycle, sim_time_ns, period_ns));
}

/// The simulator took a step and has now simulated `sim_time_ns`.
LDOS_TRACEPOINTS_FUNCTION void sim_step(
  [[maybe_unused]] std::uint64_t step, [[maybe_unused]] std::int64_t sim_time_ns) noexcept
{
  LDOS_TRACEPOINTS_EMIT(ldos_sim_step(step, sim_time_ns));
}

/// A fixed piece of work took `work_ns`.
LDOS_TRACEPOINTS_FUNCTION void cpu_speed([[maybe_unused]] std::int64_t work_ns) noexcept
{
  LDOS_TRACEPOINTS_EMIT(ldos_cpu_speed(work_ns));
}

LDOS_TRACEPOINTS_FUNCTION void planning_stage(
  [[maybe_unused]] const char * stage, [[maybe_unused]] std::int64_t ago_ns) noexcept
{
  LDOS_TRACEPOINTS_EMIT(ldos_planning_stage(stage, ago_ns));
}

LDOS_TRACEPOINTS_FUNCTION void header_stamp([[maybe_unused]] std::int64_t stamp_ns) noexcept
{
  LDOS_TRACEPOINTS_EMIT(ldos_header_stamp(stamp_ns));
}

}  // namespace ldos_tracepoints

#undef LDOS_TRACEPOINTS_FUNCTION
#undef LDOS_TRACEPOINTS_EMIT

#endif  // LDOS_TRACEPOINTS__TRACEPOINTS_HPP_
