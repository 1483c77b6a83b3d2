/* Measures the time of a tracepoint in a loop of calls. */
#ifndef LDOS_TRACEPOINT_LOOP_H
#define LDOS_TRACEPOINT_LOOP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Emits ros2:rclcpp_publish; exported, and never inlined, so that a uprobe finds each call of it. */
__attribute__((noinline, visibility("default"))) void ldos_cost_tracepoint(uint64_t message);

/* Total time of a number of calls, in nanoseconds. */
int64_t ldos_time_tracepoints(uint64_t count);

#ifdef __cplusplus
}
#endif

#endif
