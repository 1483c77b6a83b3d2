/* A libtracetools for the wheels of ROS 2, linked with this system's LTTng-UST. Its events are those of tracetools' own
 * header; it has only the functions that rcl and rmw call. */
#define TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_DEFINE
#include "tracetools/tp_call.h"
#include "tracetools/tracetools.h"

#define EVENT(name, parameters, ...)                                            \
  bool ros_trace_enabled_##name(void) { return tracepoint_enabled(ros2, name); } \
  void ros_trace_do_##name parameters { do_tracepoint(ros2, name, __VA_ARGS__); } \
  void ros_trace_##name parameters { tracepoint(ros2, name, __VA_ARGS__); }

bool ros_trace_compile_status(void) { return true; }

EVENT(rcl_init, (const void * context), context)
EVENT(rcl_node_init, (const void * node, const void * rmw, const char * name, const char * space), node, rmw, name, space)
EVENT(rmw_publisher_init, (const void * publisher, const uint8_t * gid), publisher, gid)
EVENT(rcl_publisher_init,
  (const void * publisher, const void * node, const void * rmw, const char * topic, const size_t depth),
  publisher, node, rmw, topic, depth)
EVENT(rcl_publish, (const void * publisher, const void * message), publisher, message)
EVENT(rmw_publish, (const void * publisher, const void * message, int64_t stamp), publisher, message, stamp)
EVENT(rmw_subscription_init, (const void * subscription, const uint8_t * gid), subscription, gid)
EVENT(rcl_subscription_init,
  (const void * subscription, const void * node, const void * rmw, const char * topic, const size_t depth),
  subscription, node, rmw, topic, depth)
EVENT(rmw_take, (const void * subscription, const void * message, int64_t stamp, const bool taken),
  subscription, message, stamp, taken)
EVENT(rcl_take, (const void * message), message)
EVENT(rcl_service_init, (const void * service, const void * node, const void * rmw, const char * name),
  service, node, rmw, name)
EVENT(rcl_client_init, (const void * client, const void * node, const void * rmw, const char * name),
  client, node, rmw, name)
EVENT(rcl_timer_init, (const void * timer, int64_t period), timer, period)
EVENT(rcl_lifecycle_state_machine_init, (const void * node, const void * machine), node, machine)
EVENT(rcl_lifecycle_transition, (const void * machine, const char * start, const char * goal), machine, start, goal)
