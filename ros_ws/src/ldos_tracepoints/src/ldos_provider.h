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

// The events of provider `ldos`, with fields in wire order. The embedded stack emits the
// same; pytest_ldos/base/ros2.py names them for the reader, and a test compares all three.

// LTTng reads this header several times.
// NOLINT(build/header_guard)

#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER ldos

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "ldos_provider.h"

#if !defined(LDOS_PROVIDER_H_) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LDOS_PROVIDER_H_

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(
  ldos,
  trial_begin,
  LTTNG_UST_TP_ARGS(
    const char *, goal_id_arg,
    const char *, scenario_arg,
    uint32_t, index_arg
  ),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_string(goal_id, goal_id_arg)
    lttng_ust_field_string(scenario, scenario_arg)
    lttng_ust_field_integer(uint32_t, index, index_arg)
  )
)

LTTNG_UST_TRACEPOINT_EVENT(
  ldos,
  phase,
  LTTNG_UST_TP_ARGS(
    const char *, goal_id_arg,
    const char *, phase_arg
  ),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_string(goal_id, goal_id_arg)
    lttng_ust_field_string(phase, phase_arg)
  )
)

LTTNG_UST_TRACEPOINT_EVENT(
  ldos,
  plan,
  LTTNG_UST_TP_ARGS(
    const char *, goal_id_arg,
    int64_t, duration_ns_arg,
    uint32_t, points_arg
  ),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_string(goal_id, goal_id_arg)
    lttng_ust_field_integer(int64_t, duration_ns, duration_ns_arg)
    lttng_ust_field_integer(uint32_t, points, points_arg)
  )
)

LTTNG_UST_TRACEPOINT_EVENT(
  ldos,
  trial_end,
  LTTNG_UST_TP_ARGS(
    const char *, goal_id_arg,
    int32_t, error_code_arg
  ),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_string(goal_id, goal_id_arg)
    lttng_ust_field_integer(int32_t, error_code, error_code_arg)
  )
)

LTTNG_UST_TRACEPOINT_EVENT(
  ldos,
  control_cycle,
  LTTNG_UST_TP_ARGS(
    uint64_t, cycle_arg,
    int64_t, sim_time_ns_arg,
    int64_t, period_ns_arg
  ),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer(uint64_t, cycle, cycle_arg)
    lttng_ust_field_integer(int64_t, sim_time_ns, sim_time_ns_arg)
    lttng_ust_field_integer(int64_t, period_ns, period_ns_arg)
  )
)

LTTNG_UST_TRACEPOINT_EVENT(
  ldos,
  sim_step,
  LTTNG_UST_TP_ARGS(
    uint64_t, step_arg,
    int64_t, sim_time_ns_arg
  ),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer(uint64_t, step, step_arg)
    lttng_ust_field_integer(int64_t, sim_time_ns, sim_time_ns_arg)
  )
)

LTTNG_UST_TRACEPOINT_EVENT(
  ldos,
  cpu_speed,
  LTTNG_UST_TP_ARGS(
    int64_t, work_ns_arg
  ),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer(int64_t, work_ns, work_ns_arg)
  )
)

LTTNG_UST_TRACEPOINT_EVENT(
  ldos,
  planning_stage,
  LTTNG_UST_TP_ARGS(
    const char *, stage_arg,
    int64_t, ago_ns_arg
  ),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_string(stage, stage_arg)
    lttng_ust_field_integer(int64_t, ago_ns, ago_ns_arg)
  )
)

LTTNG_UST_TRACEPOINT_EVENT(
  ldos,
  header_stamp,
  LTTNG_UST_TP_ARGS(
    int64_t, stamp_ns_arg
  ),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer(int64_t, stamp_ns, stamp_ns_arg)
  )
)

#endif  // LDOS_PROVIDER_H_

#include <lttng/tracepoint-event.h>
