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

#ifndef LDOS_TRACEPOINTS__TRACEPOINTS_H_
#define LDOS_TRACEPOINTS__TRACEPOINTS_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Emits `ldos:trial_begin`. `goal_id` is 32 hex characters.
void ldos_trial_begin(const char * goal_id, const char * scenario, uint32_t index);

/// Emits `ldos:phase`. `phase`: goal_sent, goal_accepted, planning, executing or result.
void ldos_phase(const char * goal_id, const char * phase);

/// Emits `ldos:plan`: duration and number of points of the planned trajectory.
void ldos_plan(const char * goal_id, int64_t duration_ns, uint32_t points);

/// Emits `ldos:trial_end`. `error_code` is MoveIt's.
void ldos_trial_end(const char * goal_id, int32_t error_code);

/// Emits `ldos:control_cycle`. Time and period are those the controller was given.
void ldos_control_cycle(uint64_t cycle, int64_t sim_time_ns, int64_t period_ns);

/// Emits `ldos:sim_step`. `sim_time_ns` is the time simulated so far.
void ldos_sim_step(uint64_t step, int64_t sim_time_ns);

/// Emits `ldos:cpu_speed`: the time of a fixed piece of work.
void ldos_cpu_speed(int64_t work_ns);

void ldos_planning_stage(const char * stage, int64_t ago_ns);

/// Emits `ldos:header_stamp`: the stamp in the header of the message whose callback runs.
void ldos_header_stamp(int64_t stamp_ns);

#ifdef __cplusplus
}
#endif

#endif  // LDOS_TRACEPOINTS__TRACEPOINTS_H_
