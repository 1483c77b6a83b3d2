/* The tracepoints of ROS 2 Jazzy's tracetools that the embedded node layer emits: the same
 * names, fields and types, so that a reader cannot distinguish the two. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER ros2

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "ros2_provider.h"

#if !defined(LDOS_ROS2_PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LDOS_ROS2_PROVIDER_H

#include <lttng/tracepoint.h>
#include <stddef.h>
#include <stdint.h>

#define LDOS_GID_SIZE 24

LTTNG_UST_TRACEPOINT_EVENT(ros2, rcl_init,
  LTTNG_UST_TP_ARGS(uint64_t, context_handle, const char *, version),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(uint64_t, context_handle, context_handle)
    lttng_ust_field_string(version, version)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, rcl_node_init,
  LTTNG_UST_TP_ARGS(uint64_t, node_handle, uint64_t, rmw_handle, const char *, node_name, const char *, node_namespace),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(uint64_t, node_handle, node_handle)
    lttng_ust_field_integer_hex(uint64_t, rmw_handle, rmw_handle)
    lttng_ust_field_string(node_name, node_name)
    lttng_ust_field_string(namespace, node_namespace)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, rmw_publisher_init,
  LTTNG_UST_TP_ARGS(uint64_t, rmw_publisher_handle, const uint8_t *, gid),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(uint64_t, rmw_publisher_handle, rmw_publisher_handle)
    lttng_ust_field_array(uint8_t, gid, gid, LDOS_GID_SIZE)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, rcl_publisher_init,
  LTTNG_UST_TP_ARGS(uint64_t, publisher_handle, uint64_t, node_handle, uint64_t, rmw_publisher_handle,
                    const char *, topic_name, size_t, queue_depth),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(uint64_t, publisher_handle, publisher_handle)
    lttng_ust_field_integer_hex(uint64_t, node_handle, node_handle)
    lttng_ust_field_integer_hex(uint64_t, rmw_publisher_handle, rmw_publisher_handle)
    lttng_ust_field_string(topic_name, topic_name)
    lttng_ust_field_integer(size_t, queue_depth, queue_depth)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, rclcpp_publish,
  LTTNG_UST_TP_ARGS(uint64_t, message),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(uint64_t, message, message)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, rcl_publish,
  LTTNG_UST_TP_ARGS(uint64_t, publisher_handle, uint64_t, message),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(uint64_t, publisher_handle, publisher_handle)
    lttng_ust_field_integer_hex(uint64_t, message, message)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, rmw_publish,
  LTTNG_UST_TP_ARGS(uint64_t, rmw_publisher_handle, uint64_t, message, int64_t, timestamp),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(uint64_t, rmw_publisher_handle, rmw_publisher_handle)
    lttng_ust_field_integer_hex(uint64_t, message, message)
    lttng_ust_field_integer(int64_t, timestamp, timestamp)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, rmw_subscription_init,
  LTTNG_UST_TP_ARGS(uint64_t, rmw_subscription_handle, const uint8_t *, gid),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(uint64_t, rmw_subscription_handle, rmw_subscription_handle)
    lttng_ust_field_array(uint8_t, gid, gid, LDOS_GID_SIZE)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, rcl_subscription_init,
  LTTNG_UST_TP_ARGS(uint64_t, subscription_handle, uint64_t, node_handle, uint64_t, rmw_subscription_handle,
                    const char *, topic_name, size_t, queue_depth),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(uint64_t, subscription_handle, subscription_handle)
    lttng_ust_field_integer_hex(uint64_t, node_handle, node_handle)
    lttng_ust_field_integer_hex(uint64_t, rmw_subscription_handle, rmw_subscription_handle)
    lttng_ust_field_string(topic_name, topic_name)
    lttng_ust_field_integer(size_t, queue_depth, queue_depth)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, rclcpp_subscription_init,
  LTTNG_UST_TP_ARGS(uint64_t, subscription_handle, uint64_t, subscription),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(uint64_t, subscription_handle, subscription_handle)
    lttng_ust_field_integer_hex(uint64_t, subscription, subscription)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, rclcpp_subscription_callback_added,
  LTTNG_UST_TP_ARGS(uint64_t, subscription, uint64_t, callback),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(uint64_t, subscription, subscription)
    lttng_ust_field_integer_hex(uint64_t, callback, callback)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, rmw_take,
  LTTNG_UST_TP_ARGS(uint64_t, rmw_subscription_handle, uint64_t, message, int64_t, source_timestamp, int32_t, taken),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(uint64_t, rmw_subscription_handle, rmw_subscription_handle)
    lttng_ust_field_integer_hex(uint64_t, message, message)
    lttng_ust_field_integer(int64_t, source_timestamp, source_timestamp)
    lttng_ust_field_integer(int32_t, taken, taken)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, rcl_take,
  LTTNG_UST_TP_ARGS(uint64_t, message),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(uint64_t, message, message)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, rclcpp_take,
  LTTNG_UST_TP_ARGS(uint64_t, message),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(uint64_t, message, message)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, rcl_service_init,
  LTTNG_UST_TP_ARGS(uint64_t, service_handle, uint64_t, node_handle, uint64_t, rmw_service_handle,
                    const char *, service_name),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(uint64_t, service_handle, service_handle)
    lttng_ust_field_integer_hex(uint64_t, node_handle, node_handle)
    lttng_ust_field_integer_hex(uint64_t, rmw_service_handle, rmw_service_handle)
    lttng_ust_field_string(service_name, service_name)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, rclcpp_service_callback_added,
  LTTNG_UST_TP_ARGS(uint64_t, service_handle, uint64_t, callback),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(uint64_t, service_handle, service_handle)
    lttng_ust_field_integer_hex(uint64_t, callback, callback)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, rcl_client_init,
  LTTNG_UST_TP_ARGS(uint64_t, client_handle, uint64_t, node_handle, uint64_t, rmw_client_handle,
                    const char *, service_name),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(uint64_t, client_handle, client_handle)
    lttng_ust_field_integer_hex(uint64_t, node_handle, node_handle)
    lttng_ust_field_integer_hex(uint64_t, rmw_client_handle, rmw_client_handle)
    lttng_ust_field_string(service_name, service_name)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, rcl_timer_init,
  LTTNG_UST_TP_ARGS(uint64_t, timer_handle, int64_t, period),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(uint64_t, timer_handle, timer_handle)
    lttng_ust_field_integer(int64_t, period, period)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, rclcpp_timer_callback_added,
  LTTNG_UST_TP_ARGS(uint64_t, timer_handle, uint64_t, callback),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(uint64_t, timer_handle, timer_handle)
    lttng_ust_field_integer_hex(uint64_t, callback, callback)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, rclcpp_timer_link_node,
  LTTNG_UST_TP_ARGS(uint64_t, timer_handle, uint64_t, node_handle),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(uint64_t, timer_handle, timer_handle)
    lttng_ust_field_integer_hex(uint64_t, node_handle, node_handle)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, rclcpp_callback_register,
  LTTNG_UST_TP_ARGS(uint64_t, callback, const char *, symbol),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(uint64_t, callback, callback)
    lttng_ust_field_string(symbol, symbol)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, callback_start,
  LTTNG_UST_TP_ARGS(uint64_t, callback, int32_t, is_intra_process),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(uint64_t, callback, callback)
    lttng_ust_field_integer(int32_t, is_intra_process, is_intra_process)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, callback_end,
  LTTNG_UST_TP_ARGS(uint64_t, callback),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(uint64_t, callback, callback)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, rclcpp_executor_get_next_ready,
  LTTNG_UST_TP_ARGS(),
  LTTNG_UST_TP_FIELDS())

LTTNG_UST_TRACEPOINT_EVENT(ros2, rclcpp_executor_wait_for_work,
  LTTNG_UST_TP_ARGS(int64_t, timeout),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer(int64_t, timeout, timeout)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, rclcpp_executor_execute,
  LTTNG_UST_TP_ARGS(uint64_t, handle),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer_hex(uint64_t, handle, handle)))

#endif

#include <lttng/tracepoint-event.h>
