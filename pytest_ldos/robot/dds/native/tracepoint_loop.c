#include "tracepoint_loop.h"

#include <time.h>

#include "ros2_provider.h"

void ldos_cost_tracepoint(uint64_t message) { lttng_ust_tracepoint(ros2, rclcpp_publish, message); }

static int64_t monotonic_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t ldos_time_tracepoints(uint64_t count) {
  const int64_t begin_ns = monotonic_ns();
  for (uint64_t call = 0; call < count; ++call) {
    ldos_cost_tracepoint(call);
  }
  return monotonic_ns() - begin_ns;
}
