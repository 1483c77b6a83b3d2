/* The markers of pytest-ldos: trials, phases, control cycles, simulator steps, and how fast a CPU was. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER ldos

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "ldos_provider.h"

#if !defined(LDOS_LDOS_PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LDOS_LDOS_PROVIDER_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(ldos, trial_begin,
  LTTNG_UST_TP_ARGS(const char *, goal_id, const char *, scenario, uint32_t, index),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_string(goal_id, goal_id)
    lttng_ust_field_string(scenario, scenario)
    lttng_ust_field_integer(uint32_t, index, index)))

LTTNG_UST_TRACEPOINT_EVENT(ldos, phase,
  LTTNG_UST_TP_ARGS(const char *, goal_id, const char *, phase),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_string(goal_id, goal_id)
    lttng_ust_field_string(phase, phase)))

LTTNG_UST_TRACEPOINT_EVENT(ldos, plan,
  LTTNG_UST_TP_ARGS(const char *, goal_id, int64_t, duration_ns, uint32_t, points),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_string(goal_id, goal_id)
    lttng_ust_field_integer(int64_t, duration_ns, duration_ns)
    lttng_ust_field_integer(uint32_t, points, points)))

LTTNG_UST_TRACEPOINT_EVENT(ldos, trial_end,
  LTTNG_UST_TP_ARGS(const char *, goal_id, int32_t, error_code),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_string(goal_id, goal_id)
    lttng_ust_field_integer(int32_t, error_code, error_code)))

LTTNG_UST_TRACEPOINT_EVENT(ldos, control_cycle,
  LTTNG_UST_TP_ARGS(uint64_t, cycle, int64_t, sim_time_ns, int64_t, period_ns),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer(uint64_t, cycle, cycle)
    lttng_ust_field_integer(int64_t, sim_time_ns, sim_time_ns)
    lttng_ust_field_integer(int64_t, period_ns, period_ns)))

LTTNG_UST_TRACEPOINT_EVENT(ldos, sim_step,
  LTTNG_UST_TP_ARGS(uint64_t, step, int64_t, sim_time_ns),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer(uint64_t, step, step)
    lttng_ust_field_integer(int64_t, sim_time_ns, sim_time_ns)))

LTTNG_UST_TRACEPOINT_EVENT(ldos, cpu_speed,
  LTTNG_UST_TP_ARGS(int64_t, work_ns),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer(int64_t, work_ns, work_ns)))

LTTNG_UST_TRACEPOINT_EVENT(ldos, planning_stage,
  LTTNG_UST_TP_ARGS(const char *, stage, int64_t, ago_ns),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_string(stage, stage)
    lttng_ust_field_integer(int64_t, ago_ns, ago_ns)))

LTTNG_UST_TRACEPOINT_EVENT(ldos, header_stamp,
  LTTNG_UST_TP_ARGS(int64_t, stamp_ns),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer(int64_t, stamp_ns, stamp_ns)))

#endif

#include <lttng/tracepoint-event.h>
