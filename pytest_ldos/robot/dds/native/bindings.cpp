// One Python function per tracepoint, named after the event, with arguments in the order of its fields.

#include <nanobind/nanobind.h>

#include <cstdint>
#include <cstring>

#include "ldos_provider.h"
#include "ros2_provider.h"
#include "tracepoint_loop.h"

namespace nb = nanobind;

namespace {

using Handle = std::uint64_t;
using Text = const char*;

// A DDS GUID of 16 bytes in the field of 24 that tracetools records.
struct Gid {
  explicit Gid(const nb::bytes& guid) {
    std::memcpy(bytes, guid.c_str(), guid.size() < sizeof(bytes) ? guid.size() : sizeof(bytes));
  }
  std::uint8_t bytes[LDOS_GID_SIZE] = {};
};

void define_ros2(nb::module_& module) {
  module.def("rcl_init", [](Handle context, Text version) { lttng_ust_tracepoint(ros2, rcl_init, context, version); });
  module.def("rcl_node_init", [](Handle node, Handle rmw, Text name, Text name_space) {
    lttng_ust_tracepoint(ros2, rcl_node_init, node, rmw, name, name_space);
  });
  module.def("rmw_publisher_init", [](Handle rmw, const nb::bytes& guid) {
    const Gid gid(guid);
    lttng_ust_tracepoint(ros2, rmw_publisher_init, rmw, gid.bytes);
  });
  module.def("rcl_publisher_init", [](Handle publisher, Handle node, Handle rmw, Text topic, std::size_t depth) {
    lttng_ust_tracepoint(ros2, rcl_publisher_init, publisher, node, rmw, topic, depth);
  });
  module.def("rclcpp_publish", [](Handle message) { lttng_ust_tracepoint(ros2, rclcpp_publish, message); });
  module.def("rcl_publish", [](Handle publisher, Handle message) {
    lttng_ust_tracepoint(ros2, rcl_publish, publisher, message);
  });
  module.def("rmw_publish", [](Handle rmw, Handle message, std::int64_t timestamp) {
    lttng_ust_tracepoint(ros2, rmw_publish, rmw, message, timestamp);
  });
  module.def("rmw_subscription_init", [](Handle rmw, const nb::bytes& guid) {
    const Gid gid(guid);
    lttng_ust_tracepoint(ros2, rmw_subscription_init, rmw, gid.bytes);
  });
  module.def("rcl_subscription_init", [](Handle subscription, Handle node, Handle rmw, Text topic, std::size_t depth) {
    lttng_ust_tracepoint(ros2, rcl_subscription_init, subscription, node, rmw, topic, depth);
  });
  module.def("rclcpp_subscription_init", [](Handle handle, Handle subscription) {
    lttng_ust_tracepoint(ros2, rclcpp_subscription_init, handle, subscription);
  });
  module.def("rclcpp_subscription_callback_added", [](Handle subscription, Handle callback) {
    lttng_ust_tracepoint(ros2, rclcpp_subscription_callback_added, subscription, callback);
  });
  module.def("rmw_take", [](Handle rmw, Handle message, std::int64_t source_timestamp, bool taken) {
    lttng_ust_tracepoint(ros2, rmw_take, rmw, message, source_timestamp, taken);
  });
  module.def("rcl_take", [](Handle message) { lttng_ust_tracepoint(ros2, rcl_take, message); });
  module.def("rclcpp_take", [](Handle message) { lttng_ust_tracepoint(ros2, rclcpp_take, message); });
  module.def("rcl_service_init", [](Handle service, Handle node, Handle rmw, Text name) {
    lttng_ust_tracepoint(ros2, rcl_service_init, service, node, rmw, name);
  });
  module.def("rclcpp_service_callback_added", [](Handle service, Handle callback) {
    lttng_ust_tracepoint(ros2, rclcpp_service_callback_added, service, callback);
  });
  module.def("rcl_client_init", [](Handle client, Handle node, Handle rmw, Text name) {
    lttng_ust_tracepoint(ros2, rcl_client_init, client, node, rmw, name);
  });
  module.def("rcl_timer_init", [](Handle timer, std::int64_t period) {
    lttng_ust_tracepoint(ros2, rcl_timer_init, timer, period);
  });
  module.def("rclcpp_timer_callback_added", [](Handle timer, Handle callback) {
    lttng_ust_tracepoint(ros2, rclcpp_timer_callback_added, timer, callback);
  });
  module.def("rclcpp_timer_link_node", [](Handle timer, Handle node) {
    lttng_ust_tracepoint(ros2, rclcpp_timer_link_node, timer, node);
  });
  module.def("rclcpp_callback_register", [](Handle callback, Text symbol) {
    lttng_ust_tracepoint(ros2, rclcpp_callback_register, callback, symbol);
  });
  module.def("callback_start", [](Handle callback, bool is_intra_process) {
    lttng_ust_tracepoint(ros2, callback_start, callback, is_intra_process);
  });
  module.def("callback_end", [](Handle callback) { lttng_ust_tracepoint(ros2, callback_end, callback); });
  module.def("rclcpp_executor_get_next_ready", [] { lttng_ust_tracepoint(ros2, rclcpp_executor_get_next_ready); });
  module.def("rclcpp_executor_wait_for_work", [](std::int64_t timeout) {
    lttng_ust_tracepoint(ros2, rclcpp_executor_wait_for_work, timeout);
  });
  module.def("rclcpp_executor_execute", [](Handle handle) {
    lttng_ust_tracepoint(ros2, rclcpp_executor_execute, handle);
  });
}

void define_ldos(nb::module_& module) {
  module.def("trial_begin", [](Text goal_id, Text scenario, std::uint32_t index) {
    lttng_ust_tracepoint(ldos, trial_begin, goal_id, scenario, index);
  });
  module.def("phase", [](Text goal_id, Text phase) { lttng_ust_tracepoint(ldos, phase, goal_id, phase); });
  module.def("plan", [](Text goal_id, std::int64_t duration_ns, std::uint32_t points) {
    lttng_ust_tracepoint(ldos, plan, goal_id, duration_ns, points);
  });
  module.def("trial_end", [](Text goal_id, std::int32_t error_code) {
    lttng_ust_tracepoint(ldos, trial_end, goal_id, error_code);
  });
  module.def("control_cycle", [](std::uint64_t cycle, std::int64_t sim_time_ns, std::int64_t period_ns) {
    lttng_ust_tracepoint(ldos, control_cycle, cycle, sim_time_ns, period_ns);
  });
  module.def("sim_step", [](std::uint64_t step, std::int64_t sim_time_ns) {
    lttng_ust_tracepoint(ldos, sim_step, step, sim_time_ns);
  });
  module.def("cpu_speed", [](std::int64_t work_ns) { lttng_ust_tracepoint(ldos, cpu_speed, work_ns); });
  module.def("planning_stage", [](const char* stage, std::int64_t ago_ns) {
    lttng_ust_tracepoint(ldos, planning_stage, stage, ago_ns);
  });
  module.def("header_stamp", [](std::int64_t stamp_ns) { lttng_ust_tracepoint(ldos, header_stamp, stamp_ns); });
}

}  // namespace

NB_MODULE(_lttng, module) {
  define_ros2(module);
  define_ldos(module);
  module.def("_time_tracepoints", &ldos_time_tracepoints);
}
