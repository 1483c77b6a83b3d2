"""All tracepoints by name, with their fields in wire order.

`ros2:*` are those of tracetools 8.2 (ROS 2 Jazzy); `ldos:*` are this project's markers;
`sched_*` are the kernel's.
The embedded node layer emits them, the C++ workspace defines them, and the reader
looks for them; a test compares all three with this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Ros2(StrEnum):
    """Events of tracetools that are emitted or read here (`READ_ONLY`: only read)."""

    RCL_INIT = "ros2:rcl_init"
    NODE_INIT = "ros2:rcl_node_init"
    RMW_PUBLISHER_INIT = "ros2:rmw_publisher_init"
    PUBLISHER_INIT = "ros2:rcl_publisher_init"
    RCLCPP_PUBLISH = "ros2:rclcpp_publish"
    RCL_PUBLISH = "ros2:rcl_publish"
    RMW_PUBLISH = "ros2:rmw_publish"
    RMW_SUBSCRIPTION_INIT = "ros2:rmw_subscription_init"
    SUBSCRIPTION_INIT = "ros2:rcl_subscription_init"
    RCLCPP_SUBSCRIPTION_INIT = "ros2:rclcpp_subscription_init"
    SUBSCRIPTION_CALLBACK_ADDED = "ros2:rclcpp_subscription_callback_added"
    RMW_TAKE = "ros2:rmw_take"
    RCL_TAKE = "ros2:rcl_take"
    RCLCPP_TAKE = "ros2:rclcpp_take"
    SERVICE_INIT = "ros2:rcl_service_init"
    SERVICE_CALLBACK_ADDED = "ros2:rclcpp_service_callback_added"
    CLIENT_INIT = "ros2:rcl_client_init"
    TIMER_INIT = "ros2:rcl_timer_init"
    TIMER_CALLBACK_ADDED = "ros2:rclcpp_timer_callback_added"
    TIMER_LINK_NODE = "ros2:rclcpp_timer_link_node"
    CALLBACK_REGISTER = "ros2:rclcpp_callback_register"
    CALLBACK_START = "ros2:callback_start"
    CALLBACK_END = "ros2:callback_end"
    EXECUTOR_GET_NEXT_READY = "ros2:rclcpp_executor_get_next_ready"
    EXECUTOR_WAIT_FOR_WORK = "ros2:rclcpp_executor_wait_for_work"
    EXECUTOR_EXECUTE = "ros2:rclcpp_executor_execute"
    INTRA_PUBLISH = "ros2:rclcpp_intra_publish"
    RING_BUFFER_ENQUEUE = "ros2:rclcpp_ring_buffer_enqueue"
    RING_BUFFER_DEQUEUE = "ros2:rclcpp_ring_buffer_dequeue"
    BUFFER_TO_IPB = "ros2:rclcpp_buffer_to_ipb"
    IPB_TO_SUBSCRIPTION = "ros2:rclcpp_ipb_to_subscription"
    STATE_MACHINE_INIT = "ros2:rcl_lifecycle_state_machine_init"
    LIFECYCLE_TRANSITION = "ros2:rcl_lifecycle_transition"
    LINK_PERIODIC_ASYNC = "ros2:message_link_periodic_async"
    LINK_PARTIAL_SYNC = "ros2:message_link_partial_sync"
    RMW_SEND_REQUEST = "ros2:rmw_send_request"
    RMW_TAKE_REQUEST = "ros2:rmw_take_request"
    RMW_SEND_RESPONSE = "ros2:rmw_send_response"
    RMW_TAKE_RESPONSE = "ros2:rmw_take_response"


class Marker(StrEnum):
    """Events of provider `ldos`."""

    TRIAL_BEGIN = "ldos:trial_begin"
    """Begin of a trial; emitted by the goal client."""

    PHASE = "ldos:phase"
    """A goal enters a phase (`Phase`); emitted by the goal client. T1, T2 and T4 are times between two of them."""

    PLAN = "ldos:plan"
    """The plan of a goal; emitted by the goal client. T2x is T2 without its duration."""

    TRIAL_END = "ldos:trial_end"
    """End of a trial; emitted by the goal client."""

    CONTROL_CYCLE = "ldos:control_cycle"
    """A cycle of the control loop; emitted by the controller `ldos_control_probe/ControlProbe`, or the embedded arm.
    T3's periods are the times from one to the next while the arm moves."""

    SIM_STEP = "ldos:sim_step"
    """Begin of a simulator step; emitted by the Gazebo system `ldos_gz_probe`, or the embedded simulator. T5 and
    related metrics are computed from the times between two steps."""

    CPU_SPEED = "ldos:cpu_speed"
    """Duration of a fixed computation on the planner's CPU before each plan. T1 is adjusted for it."""

    PLANNING_STAGE = "ldos:planning_stage"
    """A stage of planning that ended `ago_ns` earlier; emitted by the planner `ldos_planner/OMPLPlanner`."""


class Kernel(StrEnum):
    """Events of the kernel's scheduler, as lttng-modules names them."""

    SWITCH = "sched_switch"
    WAKEUP = "sched_wakeup"
    WAKEUP_NEW = "sched_wakeup_new"
    WAKING = "sched_waking"
    MIGRATE = "sched_migrate_task"


class Phase(StrEnum):
    """Values of `phase` in ``ldos:phase``, in the order of a successful trial."""

    GOAL_SENT = "goal_sent"
    GOAL_ACCEPTED = "goal_accepted"
    PLANNING = "planning"
    EXECUTING = "executing"
    RESULT = "result"


FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    Ros2.RCL_INIT: ("context_handle", "version"),
    Ros2.NODE_INIT: ("node_handle", "rmw_handle", "node_name", "namespace"),
    Ros2.RMW_PUBLISHER_INIT: ("rmw_publisher_handle", "gid"),
    Ros2.PUBLISHER_INIT: ("publisher_handle", "node_handle", "rmw_publisher_handle", "topic_name", "queue_depth"),
    Ros2.RCLCPP_PUBLISH: ("message",),
    Ros2.RCL_PUBLISH: ("publisher_handle", "message"),
    Ros2.RMW_PUBLISH: ("rmw_publisher_handle", "message", "timestamp"),
    Ros2.RMW_SUBSCRIPTION_INIT: ("rmw_subscription_handle", "gid"),
    Ros2.SUBSCRIPTION_INIT: (
        "subscription_handle",
        "node_handle",
        "rmw_subscription_handle",
        "topic_name",
        "queue_depth",
    ),
    Ros2.RCLCPP_SUBSCRIPTION_INIT: ("subscription_handle", "subscription"),
    Ros2.SUBSCRIPTION_CALLBACK_ADDED: ("subscription", "callback"),
    Ros2.RMW_TAKE: ("rmw_subscription_handle", "message", "source_timestamp", "taken"),
    Ros2.RCL_TAKE: ("message",),
    Ros2.RCLCPP_TAKE: ("message",),
    Ros2.SERVICE_INIT: ("service_handle", "node_handle", "rmw_service_handle", "service_name"),
    Ros2.SERVICE_CALLBACK_ADDED: ("service_handle", "callback"),
    Ros2.CLIENT_INIT: ("client_handle", "node_handle", "rmw_client_handle", "service_name"),
    Ros2.TIMER_INIT: ("timer_handle", "period"),
    Ros2.TIMER_CALLBACK_ADDED: ("timer_handle", "callback"),
    Ros2.TIMER_LINK_NODE: ("timer_handle", "node_handle"),
    Ros2.CALLBACK_REGISTER: ("callback", "symbol"),
    Ros2.CALLBACK_START: ("callback", "is_intra_process"),
    Ros2.CALLBACK_END: ("callback",),
    Ros2.EXECUTOR_GET_NEXT_READY: (),
    Ros2.EXECUTOR_WAIT_FOR_WORK: ("timeout",),
    Ros2.EXECUTOR_EXECUTE: ("handle",),
    Ros2.INTRA_PUBLISH: ("publisher_handle", "message"),
    Ros2.RING_BUFFER_ENQUEUE: ("buffer", "index", "size", "overwritten"),
    Ros2.RING_BUFFER_DEQUEUE: ("buffer", "index", "size"),
    Ros2.BUFFER_TO_IPB: ("buffer", "ipb"),
    Ros2.IPB_TO_SUBSCRIPTION: ("ipb", "subscription"),
    Ros2.STATE_MACHINE_INIT: ("node_handle", "state_machine"),
    Ros2.LIFECYCLE_TRANSITION: ("state_machine", "start_label", "goal_label"),
    Ros2.LINK_PERIODIC_ASYNC: ("_subs_length", "subs", "_pubs_length", "pubs"),
    Ros2.LINK_PARTIAL_SYNC: ("_subs_length", "subs", "_pubs_length", "pubs"),
    Ros2.RMW_SEND_REQUEST: ("rmw_client_handle", "request", "sequence_number"),
    Ros2.RMW_TAKE_REQUEST: ("rmw_service_handle", "request", "client_gid", "sequence_number", "taken"),
    Ros2.RMW_SEND_RESPONSE: ("rmw_service_handle", "response", "client_gid", "sequence_number", "timestamp"),
    Ros2.RMW_TAKE_RESPONSE: ("rmw_client_handle", "response", "sequence_number", "source_timestamp", "taken"),
    Marker.TRIAL_BEGIN: ("goal_id", "scenario", "index"),
    Marker.PHASE: ("goal_id", "phase"),
    Marker.PLAN: ("goal_id", "duration_ns", "points"),
    Marker.TRIAL_END: ("goal_id", "error_code"),
    Marker.CONTROL_CYCLE: ("cycle", "sim_time_ns", "period_ns"),
    Marker.SIM_STEP: ("step", "sim_time_ns"),
    Marker.CPU_SPEED: ("work_ns",),
    Marker.PLANNING_STAGE: ("stage", "ago_ns"),
}

AFTER_JAZZY: Final = frozenset(
    {Ros2.RMW_SEND_REQUEST, Ros2.RMW_TAKE_REQUEST, Ros2.RMW_SEND_RESPONSE, Ros2.RMW_TAKE_RESPONSE}
)
"""Events of tracetools since ROS 2 Kilted."""

READ_ONLY: Final = AFTER_JAZZY | {
    Ros2.INTRA_PUBLISH,
    Ros2.RING_BUFFER_ENQUEUE,
    Ros2.RING_BUFFER_DEQUEUE,
    Ros2.BUFFER_TO_IPB,
    Ros2.IPB_TO_SUBSCRIPTION,
    Ros2.STATE_MACHINE_INIT,
    Ros2.LIFECYCLE_TRANSITION,
    Ros2.LINK_PERIODIC_ASYNC,
    Ros2.LINK_PARTIAL_SYNC,
}
"""Events that the analysis reads but the embedded node layer does not emit."""

KERNEL_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    Kernel.SWITCH: (
        "prev_comm",
        "prev_tid",
        "prev_prio",
        "prev_state",
        "next_comm",
        "next_tid",
        "next_prio",
    ),
    Kernel.WAKEUP: ("comm", "tid", "prio", "target_cpu"),
    Kernel.WAKEUP_NEW: ("comm", "tid", "prio", "target_cpu"),
    Kernel.WAKING: ("comm", "tid", "prio", "target_cpu"),
    Kernel.MIGRATE: ("comm", "tid", "prio", "orig_cpu", "dest_cpu"),
}
"""Fields of the kernel's events, which lttng-modules emits."""

RECORDED: Final = ("ros2:*", "ldos:*")
"""Event patterns a recording enables."""

TRACEPOINTS_OFF: Final = "TRACETOOLS_RUNTIME_DISABLE"
"""Environment variable that disables tracing in ROS 2 Lyrical and later if set to 1."""
