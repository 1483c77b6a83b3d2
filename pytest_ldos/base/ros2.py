"""ROS 2: supported distributions, tracepoints, and causal paths.

`ros2:*` are those of tracetools 8.2 (ROS 2 Jazzy); `ldos:*` are this project's markers; `sched_*` are the kernel's. A
test compares them with the embedded node layer, which emits them, the C++ workspace, which defines them, and the
reader. Another compares the distributions with ``.ci/ros2-setup`` and the workflows, which cannot import this module.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Self

from pytest_ldos.base.errors import require
from pytest_ldos.base.text import NS_PER_MS


class _Event(StrEnum):
    """Events by name, with their fields in wire order."""

    fields: tuple[str, ...]

    def __new__(cls, value: str, fields: tuple[str, ...]) -> Self:
        member = str.__new__(cls, value)
        member._value_, member.fields = value, fields
        return member


class Ros2(_Event):
    """Events of tracetools that are emitted or read here."""

    RCL_INIT = "ros2:rcl_init", ("context_handle", "version")
    NODE_INIT = "ros2:rcl_node_init", ("node_handle", "rmw_handle", "node_name", "namespace")
    RMW_PUBLISHER_INIT = "ros2:rmw_publisher_init", ("rmw_publisher_handle", "gid")
    PUBLISHER_INIT = (
        "ros2:rcl_publisher_init",
        ("publisher_handle", "node_handle", "rmw_publisher_handle", "topic_name", "queue_depth"),
    )
    RCLCPP_PUBLISH = "ros2:rclcpp_publish", ("message",)
    RCL_PUBLISH = "ros2:rcl_publish", ("publisher_handle", "message")
    RMW_PUBLISH = "ros2:rmw_publish", ("rmw_publisher_handle", "message", "timestamp")
    RMW_SUBSCRIPTION_INIT = "ros2:rmw_subscription_init", ("rmw_subscription_handle", "gid")
    SUBSCRIPTION_INIT = (
        "ros2:rcl_subscription_init",
        ("subscription_handle", "node_handle", "rmw_subscription_handle", "topic_name", "queue_depth"),
    )
    RCLCPP_SUBSCRIPTION_INIT = "ros2:rclcpp_subscription_init", ("subscription_handle", "subscription")
    SUBSCRIPTION_CALLBACK_ADDED = "ros2:rclcpp_subscription_callback_added", ("subscription", "callback")
    RMW_TAKE = "ros2:rmw_take", ("rmw_subscription_handle", "message", "source_timestamp", "taken")
    RCL_TAKE = "ros2:rcl_take", ("message",)
    RCLCPP_TAKE = "ros2:rclcpp_take", ("message",)
    SERVICE_INIT = "ros2:rcl_service_init", ("service_handle", "node_handle", "rmw_service_handle", "service_name")
    SERVICE_CALLBACK_ADDED = "ros2:rclcpp_service_callback_added", ("service_handle", "callback")
    CLIENT_INIT = "ros2:rcl_client_init", ("client_handle", "node_handle", "rmw_client_handle", "service_name")
    TIMER_INIT = "ros2:rcl_timer_init", ("timer_handle", "period")
    TIMER_CALLBACK_ADDED = "ros2:rclcpp_timer_callback_added", ("timer_handle", "callback")
    TIMER_LINK_NODE = "ros2:rclcpp_timer_link_node", ("timer_handle", "node_handle")
    CALLBACK_REGISTER = "ros2:rclcpp_callback_register", ("callback", "symbol")
    CALLBACK_START = "ros2:callback_start", ("callback", "is_intra_process")
    CALLBACK_END = "ros2:callback_end", ("callback",)
    EXECUTOR_GET_NEXT_READY = "ros2:rclcpp_executor_get_next_ready", ()
    EXECUTOR_WAIT_FOR_WORK = "ros2:rclcpp_executor_wait_for_work", ("timeout",)
    EXECUTOR_EXECUTE = "ros2:rclcpp_executor_execute", ("handle",)
    INTRA_PUBLISH = "ros2:rclcpp_intra_publish", ("publisher_handle", "message")
    RING_BUFFER_ENQUEUE = "ros2:rclcpp_ring_buffer_enqueue", ("buffer", "index", "size", "overwritten")
    RING_BUFFER_DEQUEUE = "ros2:rclcpp_ring_buffer_dequeue", ("buffer", "index", "size")
    BUFFER_TO_IPB = "ros2:rclcpp_buffer_to_ipb", ("buffer", "ipb")
    IPB_TO_SUBSCRIPTION = "ros2:rclcpp_ipb_to_subscription", ("ipb", "subscription")
    STATE_MACHINE_INIT = "ros2:rcl_lifecycle_state_machine_init", ("node_handle", "state_machine")
    LIFECYCLE_TRANSITION = "ros2:rcl_lifecycle_transition", ("state_machine", "start_label", "goal_label")
    LINK_PERIODIC_ASYNC = "ros2:message_link_periodic_async", ("_subs_length", "subs", "_pubs_length", "pubs")
    LINK_PARTIAL_SYNC = "ros2:message_link_partial_sync", ("_subs_length", "subs", "_pubs_length", "pubs")
    RMW_SEND_REQUEST = "ros2:rmw_send_request", ("rmw_client_handle", "request", "sequence_number")
    RMW_TAKE_REQUEST = (
        "ros2:rmw_take_request",
        ("rmw_service_handle", "request", "client_gid", "sequence_number", "taken"),
    )
    RMW_SEND_RESPONSE = (
        "ros2:rmw_send_response",
        ("rmw_service_handle", "response", "client_gid", "sequence_number", "timestamp"),
    )
    RMW_TAKE_RESPONSE = (
        "ros2:rmw_take_response",
        ("rmw_client_handle", "response", "sequence_number", "source_timestamp", "taken"),
    )


class Caret(_Event):
    """Events of CARET, which have the middleware's stamp where older ROS 2 writes none.

    An address may be bound to another one first, as Fast DDS copies a message before it stamps it.
    """

    BIND_ADDRESS = "ros2_caret:dds_bind_addr_to_addr", ("addr_from", "addr_to")
    BIND = "ros2_caret:dds_bind_addr_to_stamp", ("addr", "source_stamp")
    DISPATCH = "ros2:dispatch_subscription_callback", ("message", "callback", "source_stamp", "message_timestamp")


_NAMING: Final = ("_init", "_added", "_link_node", "_register", "_to_ipb", "_to_subscription")

CARETS_OWN: Final[Mapping[str, str]] = {
    **{each.replace("ros2:", "ros2_caret:"): each for each in Ros2 if each.endswith(_NAMING)},
    "ros2_caret:dds_write": Ros2.RMW_PUBLISH,
}
"""Events that CARET since 0.4 writes in place of ROS 2's, with the same fields, and ROS 2's names of them."""


class Marker(_Event):
    """Events of provider `ldos`."""

    TRIAL_BEGIN = "ldos:trial_begin", ("goal_id", "scenario", "index")
    """Begin of a trial; emitted by the goal client."""

    PHASE = "ldos:phase", ("goal_id", "phase")
    """A goal enters a phase (`Phase`); emitted by the goal client. T1, T2 and T4 are times between two of them."""

    PLAN = "ldos:plan", ("goal_id", "duration_ns", "points")
    """The plan of a goal; emitted by the goal client. T2x is T2 without its duration."""

    TRIAL_END = "ldos:trial_end", ("goal_id", "error_code")
    """End of a trial; emitted by the goal client."""

    CONTROL_CYCLE = "ldos:control_cycle", ("cycle", "sim_time_ns", "period_ns")
    """A cycle of the control loop; emitted by the controller `ldos_control_probe/ControlProbe`, or the embedded arm.
    T3's periods are the times from one to the next while the arm moves."""

    SIM_STEP = "ldos:sim_step", ("step", "sim_time_ns")
    """Begin of a simulator step; emitted by the Gazebo system `ldos_gz_probe`, or the embedded simulator. T5 and
    related metrics are computed from the times between two steps."""

    CPU_SPEED = "ldos:cpu_speed", ("work_ns",)
    """Duration of a fixed computation on the planner's CPU before each plan. T1 is adjusted for it."""

    PLANNING_STAGE = "ldos:planning_stage", ("stage", "ago_ns")
    """A stage of planning that ended `ago_ns` earlier; emitted by the planner `ldos_planner/OMPLPlanner`."""

    HEADER_STAMP = "ldos:header_stamp", ("stamp_ns",)
    """Stamp in the header of the message whose callback runs; emitted by nodes with synchronizers to be followed."""


class Kernel(_Event):
    """Events of the kernel's scheduler, as lttng-modules names them."""

    SWITCH = "sched_switch", ("prev_comm", "prev_tid", "prev_prio", "prev_state", "next_comm", "next_tid", "next_prio")
    WAKEUP = "sched_wakeup", ("comm", "tid", "prio", "target_cpu")
    WAKEUP_NEW = "sched_wakeup_new", ("comm", "tid", "prio", "target_cpu")
    WAKING = "sched_waking", ("comm", "tid", "prio", "target_cpu")
    MIGRATE = "sched_migrate_task", ("comm", "tid", "prio", "orig_cpu", "dest_cpu")


class Phase(StrEnum):
    """Values of `phase` in ``ldos:phase``, in the order of a successful trial."""

    GOAL_SENT = "goal_sent"
    GOAL_ACCEPTED = "goal_accepted"
    PLANNING = "planning"
    EXECUTING = "executing"
    RESULT = "result"


FIELDS: Final[Mapping[str, tuple[str, ...]]] = {each: each.fields for each in (*Ros2, *Marker)}

AFTER_JAZZY: Final = frozenset(
    {Ros2.RMW_SEND_REQUEST, Ros2.RMW_TAKE_REQUEST, Ros2.RMW_SEND_RESPONSE, Ros2.RMW_TAKE_RESPONSE}
)
"""Events of tracetools since ROS 2 Kilted."""

KERNEL_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {each: each.fields for each in Kernel}

RECORDED: Final = ("ros2:*", "ldos:*")


class OwnEvent(NamedTuple):
    """An event of an own tracepoint (``my_pkg:begin``), with the fields that must match, or hold what is measured."""

    name: str
    fields: tuple[str, ...] = ()


TRACEPOINTS_OFF: Final = "TRACETOOLS_RUNTIME_DISABLE"
"""Environment variable that disables tracing in ROS 2 Lyrical and later if set to 1."""


@dataclass(frozen=True, kw_only=True)
class Distro:
    """A ROS 2 distribution.

    Reference: REP 2000.
    """

    name: str  # as in ``ROS_DISTRO`` and in package names
    ubuntu: str  # version of Ubuntu with apt packages
    codename: str
    python: str
    gazebo: str  # release of Gazebo that it is paired with
    pytest: str  # requirement for pytest, compatible with its pytest plugins (launch_pytest, launch_testing)
    rmw: str = "rmw_fastrtps_cpp"  # its default middleware
    was_measured: bool = True  # True if this project was tested on it with an arm

    @property
    def title(self) -> str:
        """``ROS 2 Jazzy``."""
        return f"ROS 2 {self.name.capitalize()}"

    @property
    def messages(self) -> str:
        """Name of its message definitions in rosbags."""
        return f"ros2_{self.name}"


JAZZY: Final = Distro(
    name="jazzy", ubuntu="24.04", codename="noble", python="3.12", gazebo="harmonic", pytest="pytest>=8.0,<8.4"
)

LYRICAL: Final = Distro(
    name="lyrical",
    ubuntu="26.04",
    codename="resolute",
    python="3.14",
    gazebo="jetty",
    pytest="pytest>=8.0",
    was_measured=False,
)

DISTROS: Final[Mapping[str, Distro]] = {each.name: each for each in (JAZZY, LYRICAL)}

DEFAULT: Final = JAZZY
"""The distribution that is installed and named in remedies if none is found."""


class LinkRule(StrEnum):
    """Rule by which a node's publications depend on messages that it received earlier."""

    PERIODIC_ASYNC = "periodic_async"
    PARTIAL_SYNC = "partial_sync"
    EXACT_TIME = "exact_time"
    APPROXIMATE_TIME = "approximate_time"
    TRANSFORM = "transform"


@dataclass(frozen=True, kw_only=True)
class LinkSpec:
    """An indirect causal link.

    Attributes:
        rule: `periodic_async`: publishes from the last message of each input;
            `partial_sync`: publishes when each input got a new message;
            `exact_time`, `approximate_time`: synchronizers of message_filters;
            `transform`: looks up a transform of tf2, or waits for it with tf2's message filter.
        node: full name of the node (``/fusion``).
        inputs: topics it subscribes to; ``/tf`` may be that of another node of its process.
        outputs: topics it publishes on.
    """

    rule: LinkRule
    node: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def __post_init__(self) -> None:
        is_whole = all((self.node, self.inputs, self.outputs))
        require(is_whole, f"a link of {self.node} needs inputs and outputs", remedy='node = "…", inputs = ["…"], …')


@dataclass(frozen=True, kw_only=True)
class PathSpec:
    """A causal path, end to end.

    Attributes:
        name: name in reports.
        via: at least two topics (``/joint_states``, ``/tf``; links between them are found) or
            phases of a goal (``goal_sent``, ``planning``, ``executing``, ``result``).
        deadline_ms: upper limit of its latency; ``None`` for no deadline.
        hard: True if a single missed deadline is a failure.
        links: indirect causal links on the path.
    """

    name: str
    via: tuple[str, ...]
    deadline_ms: float | None = None
    hard: bool = False
    links: tuple[LinkSpec, ...] = ()

    def __post_init__(self) -> None:
        require(bool(self.name), "a path has no name", remedy='name = "…"')
        require(len(self.via) >= 2, f"path {self.name!r} needs a beginning and an end", remedy="via = [FROM, …, TO]")
        topics = sum(each.startswith("/") for each in self.via)
        phases = sum(each in set(Phase) for each in self.via)
        require(
            len(self.via) in {topics, phases},
            f"path {self.name!r} leads through {', '.join(self.via)}",
            remedy=f"name topics only (each begins with /) or phases only ({', '.join(Phase)})",
        )
        in_order = [phase for phase in Phase if phase in self.via]
        require(
            not phases or list(self.via) == in_order,
            f"path {self.name!r} leads through {', '.join(self.via)}",
            remedy=f"name each phase of path {self.name!r} once, in the order {', '.join(Phase)}",
        )
        require(
            self.deadline_ms is None or 0 < self.deadline_ms < math.inf,
            f"deadline_ms of path {self.name!r} must be above 0 and finite",
        )

    @property
    def of_phases(self) -> bool:
        """True for a path of goal phases instead of topics."""
        return not self.via[0].startswith("/")

    @property
    def deadline_ns(self) -> int | None:
        return None if self.deadline_ms is None else round(self.deadline_ms * NS_PER_MS)


STATE_FEEDBACK: Final = "state feedback"

BUILT_IN_PATHS: Final = (
    PathSpec(name="planning", via=(Phase.PLANNING, Phase.EXECUTING), deadline_ms=5000),
    PathSpec(name="execution", via=(Phase.EXECUTING, Phase.RESULT)),
    PathSpec(name="goal", via=(Phase.GOAL_SENT, Phase.PLANNING, Phase.EXECUTING, Phase.RESULT)),
    PathSpec(name=STATE_FEEDBACK, via=("/joint_states", "/tf"), deadline_ms=10),
)
"""Predefined paths of an arm; a declared path of the same name replaces one."""
