/* Tracepoints of a program of a user's own: spans on a thread and between threads, intervals, and a value. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER solver

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "solver_provider.h"

#if !defined(SOLVER_PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define SOLVER_PROVIDER_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(solver, begin, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())

LTTNG_UST_TRACEPOINT_EVENT(solver, end, LTTNG_UST_TP_ARGS(double, cost, const char *, status),
  LTTNG_UST_TP_FIELDS(lttng_ust_field_float(double, cost, cost) lttng_ust_field_string(status, status)))

LTTNG_UST_TRACEPOINT_EVENT(solver, asked, LTTNG_UST_TP_ARGS(uint64_t, id),
  LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, id, id)))

LTTNG_UST_TRACEPOINT_EVENT(solver, answered, LTTNG_UST_TP_ARGS(int32_t, request),
  LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int32_t, request, request)))

LTTNG_UST_TRACEPOINT_EVENT(solver, tick, LTTNG_UST_TP_ARGS(int, robot),
  LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, robot, robot)))

LTTNG_UST_TRACEPOINT_EVENT(solver, retry, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())

#endif

#include <lttng/tracepoint-event.h>
