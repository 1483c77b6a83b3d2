/* Emits what the executors of a ROS 2 process emit, as fast as the tracer takes it.
 *
 *     ros2_stack NAME THREADS CYCLES
 *
 * Each thread is one executor that goes through CYCLES cycles of waiting, taking a message, running
 * its callback and publishing from it, in the order of calls in rclcpp, rcl and rmw. Names and
 * fields of the events are those of ROS 2's tracetools. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "ros2_provider.h"

#define emit(...) lttng_ust_tracepoint(ros2, __VA_ARGS__)

struct executor {
  pthread_t thread;
  const char *process;
  uint64_t number;
  uint64_t cycles;
};

/* Handles are addresses in the real stack. */
static uint64_t handle(const struct executor *self, uint64_t kind) {
  return 0x7f0000000000u + self->number * 0x100000u + kind * 0x400u;
}

enum { NODE = 1, PUBLISHER, RMW_PUBLISHER, SUBSCRIPTION, RMW_SUBSCRIPTION, RCLCPP_SUBSCRIPTION, CALLBACK, MESSAGE };

static void declare(const struct executor *self) {
  static const uint8_t gid[LDOS_GID_SIZE] = {1, 15, 9};
  char topic[64];
  snprintf(topic, sizeof topic, "/%s/out_%u", self->process, (unsigned)self->number);
  emit(rcl_node_init, handle(self, NODE), handle(self, NODE) + 8, self->process, "/");
  emit(rmw_publisher_init, handle(self, RMW_PUBLISHER), gid);
  emit(rcl_publisher_init, handle(self, PUBLISHER), handle(self, NODE), handle(self, RMW_PUBLISHER), topic, 10);
  emit(rmw_subscription_init, handle(self, RMW_SUBSCRIPTION), gid);
  emit(rcl_subscription_init, handle(self, SUBSCRIPTION), handle(self, NODE), handle(self, RMW_SUBSCRIPTION), topic, 10);
  emit(rclcpp_subscription_init, handle(self, SUBSCRIPTION), handle(self, RCLCPP_SUBSCRIPTION));
  emit(rclcpp_subscription_callback_added, handle(self, RCLCPP_SUBSCRIPTION), handle(self, CALLBACK));
  emit(rclcpp_callback_register, handle(self, CALLBACK), "void (std::shared_ptr<sensor_msgs::msg::JointState>)");
}

static void take_and_run(const struct executor *self, uint64_t cycle) {
  const uint64_t message = handle(self, MESSAGE) + cycle % 64 * 256;
  const int64_t stamp = 1700000000000000000 + (int64_t)cycle * 1000;
  emit(rclcpp_executor_execute, handle(self, SUBSCRIPTION));
  emit(rmw_take, handle(self, RMW_SUBSCRIPTION), message, stamp, 1);
  emit(rcl_take, message);
  emit(rclcpp_take, message);
  emit(callback_start, handle(self, CALLBACK), 0);
  if (cycle % 4 != 3) {
    emit(rclcpp_publish, message + 64);
    emit(rcl_publish, handle(self, PUBLISHER), message + 64);
    emit(rmw_publish, handle(self, RMW_PUBLISHER), message + 64, stamp + 500);
  }
  emit(callback_end, handle(self, CALLBACK));
}

static void *spin(void *argument) {
  const struct executor *self = argument;
  char name[16];
  snprintf(name, sizeof name, "%.11s_%u", self->process, (unsigned)self->number % 1000u);
  pthread_setname_np(pthread_self(), name);
  declare(self);
  for (uint64_t cycle = 0; cycle < self->cycles; ++cycle) {
    emit(rclcpp_executor_wait_for_work, -1);
    emit(rclcpp_executor_get_next_ready);
    take_and_run(self, cycle);
    emit(rclcpp_executor_get_next_ready);
  }
  return NULL;
}

int main(int count, char **arguments) {
  if (count != 4) {
    fprintf(stderr, "usage: %s NAME THREADS CYCLES\n", arguments[0]);
    return 2;
  }
  const uint64_t threads = strtoull(arguments[2], NULL, 10);
  struct executor *executors = calloc(threads, sizeof *executors);
  if (executors == NULL) return 1;
  for (uint64_t i = 0; i < threads; ++i) {
    executors[i] = (struct executor){.process = arguments[1], .number = i, .cycles = strtoull(arguments[3], NULL, 10)};
    if (pthread_create(&executors[i].thread, NULL, spin, &executors[i]) != 0) return 1;
  }
  for (uint64_t i = 0; i < threads; ++i) pthread_join(executors[i].thread, NULL);
  free(executors);
  return 0;
}
