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

#include "ldos_tracepoints/tracepoints.h"

#include "ldos_provider.h"  // NOLINT(build/include_subdir)

void ldos_trial_begin(const char * goal_id, const char * scenario, uint32_t index)
{
  lttng_ust_tracepoint(ldos, trial_begin, goal_id, scenario, index);
}

void ldos_phase(const char * goal_id, const char * phase)
{
  lttng_ust_tracepoint(ldos, phase, goal_id, phase);
}

void ldos_plan(const char * goal_id, int64_t duration_ns, uint32_t points)
{
  lttng_ust_tracepoint(ldos, plan, goal_id, duration_ns, points);
}

void ldos_trial_end(const char * goal_id, int32_t error_code)
{
  lttng_ust_tracepoint(ldos, trial_end, goal_id, error_code);
}

void ldos_control_cycle(uint64_t cycle, int64_t sim_time_ns, int64_t period_ns)
{
  lttng_ust_tracepoint(ldos, control_cycle, cycle, sim_time_ns, period_ns);
}

void ldos_sim_step(uint64_t step, int64_t sim_time_ns)
{
  lttng_ust_tracepoint(ldos, sim_step, step, sim_time_ns);
}

void ldos_cpu_speed(int64_t work_ns)
{
  lttng_ust_tracepoint(ldos, cpu_speed, work_ns);
}

void ldos_planning_stage(const char * stage, int64_t ago_ns)
{
  lttng_ust_tracepoint(ldos, planning_stage, stage, ago_ns);
}

void ldos_header_stamp(int64_t stamp_ns)
{
  lttng_ust_tracepoint(ldos, header_stamp, stamp_ns);
}
