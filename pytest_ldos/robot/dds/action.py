"""ROS 2 services, parameters and actions over Cyclone DDS, as rmw_cyclonedds maps them.

Requests and replies are separate topics; both begin with the client's 64-bit id and a sequence number. As in Jazzy, an
action emits initialisation events and transport events, but no callback events, because rclcpp runs it as waitables.
"""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, Final

import numpy as np

from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.robot.dds.emission import emit, new_handle
from pytest_ldos.robot.dds.endpoint import (
    ACTION_FEEDBACK,
    ACTION_STATUS,
    DEFAULT,
    STATUS,
    Message,
    Reader,
    ReaderWaitable,
    Writer,
    dds_reply_topic,
    dds_request_topic,
    decode,
    default,
    encode,
    wall_clock_ns,
)
from pytest_ldos.robot.dds.node import Node, Publisher, Subscription, register_callback

_MATCH_WAIT_S: Final = 0.1
_MATCH_POLL_S: Final = 0.001


class Replier:
    """Sends the reply of one request, now or later, from any thread."""

    def __init__(self, writer: Writer, ros_type: str, request: Message) -> None:
        self._writer = writer
        self._ros_type = ros_type
        self._request = request

    def reply(self, **fields: Any) -> None:
        response = default(
            f"{self._ros_type}_Response",
            client_guid=self._request.client_guid,
            sequence_number=self._request.sequence_number,
            **fields,
        )
        # A request can overtake the discovery of the client's reply reader, for which rmw waits, too.
        deadline = time.monotonic() + _MATCH_WAIT_S
        while self._writer.matched() == 0 and time.monotonic() < deadline:
            time.sleep(_MATCH_POLL_S)
        self._writer.write(encode(response), wall_clock_ns())


class Service(ReaderWaitable):
    """Answers requests: `on_request` gets each request and its `Replier`.

    Tracepoints: ``rcl_service_init``, and, unless `in_action`, ``rclcpp_service_callback_added``,
    ``rclcpp_callback_register`` and, at each request, ``callback_start`` and ``callback_end``.
    """

    def __init__(
        self,
        node: Node,
        ros_type: str,
        name: str,
        on_request: Callable[[Message, Replier], None],
        *,
        in_action: bool = False,
    ) -> None:
        self._ros_type = ros_type
        self._call = on_request
        self._in_action = in_action
        participant = node.context.participant
        super().__init__(Reader(participant, dds_request_topic(name), f"{ros_type}_Request", DEFAULT))
        self._writer = Writer(participant, dds_reply_topic(name), f"{ros_type}_Response", DEFAULT)
        handle = new_handle()
        self._callback_handle = new_handle()
        emit.rcl_service_init(handle, node.handle, new_handle(), name)
        if not in_action:
            emit.rclcpp_service_callback_added(handle, self._callback_handle)
            register_callback(self._callback_handle, on_request)
        node.executor.add(self)

    def execute(self) -> None:
        sample = self._reader.take()
        if sample is None:
            return
        request = decode(sample.data, f"{self._ros_type}_Request")
        replier = Replier(self._writer, self._ros_type, request)
        if self._in_action:
            self._call(request, replier)
            return
        emit.callback_start(self._callback_handle, False)
        self._call(request, replier)
        emit.callback_end(self._callback_handle)


class Client(ReaderWaitable):
    """Sends requests and hands each reply to the callback given with its request."""

    def __init__(self, node: Node, ros_type: str, name: str) -> None:
        self.name = name
        self._ros_type = ros_type
        participant = node.context.participant
        self._writer = Writer(participant, dds_request_topic(name), f"{ros_type}_Request", DEFAULT)
        super().__init__(Reader(participant, dds_reply_topic(name), f"{ros_type}_Response", DEFAULT))
        self._guid = secrets.randbits(64)
        self._sequence = itertools.count(1)
        self._waiting: dict[int, Callable[[Message], None]] = {}
        emit.rcl_client_init(new_handle(), node.handle, new_handle(), name)
        node.executor.add(self)

    def server_is_ready(self) -> bool:
        return self._writer.matched() > 0 and self._reader.matched() > 0

    def call(self, on_reply: Callable[[Message], None], **fields: Any) -> None:
        number = next(self._sequence)
        self._waiting[number] = on_reply
        request = default(f"{self._ros_type}_Request", client_guid=self._guid, sequence_number=number, **fields)
        self._writer.write(encode(request), wall_clock_ns())

    def execute(self) -> None:
        sample = self._reader.take()
        if sample is None:
            return
        response = decode(sample.data, f"{self._ros_type}_Response")
        if response.client_guid == self._guid:
            on_reply = self._waiting.pop(response.sequence_number, None)
            if on_reply is not None:
                on_reply(response)


_CANCEL_GOAL: Final = "action_msgs/srv/CancelGoal"
_STATUS_ARRAY: Final = "action_msgs/msg/GoalStatusArray"


class GoalStatus(IntEnum):  # action_msgs/msg/GoalStatus
    UNKNOWN = 0
    ACCEPTED = 1
    EXECUTING = 2
    CANCELING = 3
    SUCCEEDED = 4
    CANCELED = 5
    ABORTED = 6


class CancelCode(IntEnum):  # action_msgs/srv/CancelGoal
    NONE = 0
    UNKNOWN_GOAL = 2
    GOAL_TERMINATED = 3


_RUNNING: Final = frozenset({GoalStatus.ACCEPTED, GoalStatus.EXECUTING, GoalStatus.CANCELING})


def to_uuid(goal_id: str) -> Message:
    """The ROS message for 32 hexadecimal characters."""
    return default("unique_identifier_msgs/msg/UUID", uuid=np.frombuffer(bytes.fromhex(goal_id), dtype=np.uint8))


def from_uuid(message: Message) -> str:
    return bytes(message.uuid).hex()


class ServerGoal:
    """An accepted goal on the server's side. Its methods may be called from any thread."""

    def __init__(self, server: ActionServer, goal_id: str, goal: Message) -> None:
        self.goal_id = goal_id
        self.goal = goal
        self.status = GoalStatus.EXECUTING
        seconds, nanoseconds = divmod(wall_clock_ns(), NS_PER_S)
        self.stamp = default("builtin_interfaces/msg/Time", sec=seconds, nanosec=nanoseconds)
        self._server = server

    def publish_feedback(self, **fields: Any) -> None:
        self._server.publish_feedback(self, fields)

    def finish(self, status: GoalStatus, **result: Any) -> None:
        self._server.finish(self, status, result)


class ActionServer:
    """Serves an action: `on_goal` gets each goal and returns true to accept it; `on_cancel` gets the cancelled ones.

    The receiver of an accepted goal executes it, and calls `ServerGoal.finish` once.
    """

    def __init__(
        self,
        node: Node,
        ros_type: str,
        name: str,
        *,
        on_goal: Callable[[ServerGoal], bool],
        on_cancel: Callable[[ServerGoal], None],
    ) -> None:
        self._ros_type = ros_type
        self._on_goal = on_goal
        self._on_cancel = on_cancel
        self._lock = threading.Lock()
        self._goals: dict[str, ServerGoal] = {}
        self._results: dict[str, Message] = {}
        self._awaited: dict[str, list[Replier]] = {}
        prefix = f"{name}/_action"
        Service(node, f"{ros_type}_SendGoal", f"{prefix}/send_goal", self._send_goal, in_action=True)
        Service(node, _CANCEL_GOAL, f"{prefix}/cancel_goal", self._cancel_goal, in_action=True)
        Service(node, f"{ros_type}_GetResult", f"{prefix}/get_result", self._get_result, in_action=True)
        feedback_type = f"{ros_type}_FeedbackMessage"
        self._feedback = Publisher(node, feedback_type, f"{name}{ACTION_FEEDBACK}", DEFAULT, in_action=True)
        self._status = Publisher(node, _STATUS_ARRAY, f"{name}{ACTION_STATUS}", STATUS, in_action=True)

    def publish_feedback(self, goal: ServerGoal, fields: dict[str, Any]) -> None:
        feedback = default(f"{self._ros_type}_Feedback", **fields)
        message = default(f"{self._ros_type}_FeedbackMessage", goal_id=to_uuid(goal.goal_id), feedback=feedback)
        self._feedback.publish(message)

    def finish(self, goal: ServerGoal, status: GoalStatus, fields: dict[str, Any]) -> None:
        result = default(f"{self._ros_type}_Result", **fields)
        with self._lock:
            goal.status = status
            self._results[goal.goal_id] = result
            awaited = self._awaited.pop(goal.goal_id, [])
        self._publish_status()
        for replier in awaited:
            replier.reply(status=int(status), result=result)

    def _publish_status(self) -> None:
        with self._lock:
            statuses = [
                default("action_msgs/msg/GoalStatus", goal_info=_goal_info(goal), status=int(goal.status))
                for goal in self._goals.values()
            ]
        self._status.publish(default(_STATUS_ARRAY, status_list=statuses))

    def _send_goal(self, request: Message, replier: Replier) -> None:
        goal = ServerGoal(self, from_uuid(request.goal_id), request.goal)
        with self._lock:
            is_known = goal.goal_id in self._goals
            if not is_known:
                # The last finished goal stays, because its result may still be requested.
                finished = [key for key, each in self._goals.items() if each.status not in _RUNNING]
                for key in finished[:-1]:
                    del self._goals[key]
                    self._results.pop(key, None)
                self._goals[goal.goal_id] = goal
        accepted = not is_known and self._on_goal(goal)
        if not accepted and not is_known:
            del self._goals[goal.goal_id]
        replier.reply(accepted=accepted, stamp=goal.stamp)
        if accepted:
            self._publish_status()

    def _get_result(self, request: Message, replier: Replier) -> None:
        goal_id = from_uuid(request.goal_id)
        with self._lock:
            goal = self._goals.get(goal_id)
            result = self._results.get(goal_id)
            if goal is not None and result is None:
                self._awaited.setdefault(goal_id, []).append(replier)
                return
        if goal is None:
            replier.reply(status=int(GoalStatus.UNKNOWN))
        else:
            replier.reply(status=int(goal.status), result=result)

    def _cancel_goal(self, request: Message, replier: Replier) -> None:
        """Cancels a goal; an id of zeros means all goals, as in ROS 2 (time stamps are ignored)."""
        goal_id = from_uuid(request.goal_info.goal_id)
        with self._lock:
            asked = [goal for key, goal in self._goals.items() if key == goal_id or not int(goal_id, 16)]
            canceling = [goal for goal in asked if goal.status in _RUNNING]
            for goal in canceling:
                goal.status = GoalStatus.CANCELING
        code = CancelCode.NONE if canceling else CancelCode.GOAL_TERMINATED if asked else CancelCode.UNKNOWN_GOAL
        replier.reply(return_code=int(code), goals_canceling=[_goal_info(goal) for goal in canceling])
        if canceling:
            self._publish_status()
        for goal in canceling:
            self._on_cancel(goal)


def _goal_info(goal: ServerGoal) -> Message:
    return default("action_msgs/msg/GoalInfo", goal_id=to_uuid(goal.goal_id), stamp=goal.stamp)


class ActionClient:
    """Sends one goal at a time (feedback of others is dropped). All callbacks run on the executor's thread."""

    def __init__(self, node: Node, ros_type: str, name: str) -> None:
        self.name = name
        self._ros_type = ros_type
        prefix = f"{name}/_action"
        self._send_goal = Client(node, f"{ros_type}_SendGoal", f"{prefix}/send_goal")
        self._cancel_goal = Client(node, _CANCEL_GOAL, f"{prefix}/cancel_goal")
        self._get_result = Client(node, f"{ros_type}_GetResult", f"{prefix}/get_result")
        self._feedback = Subscription(
            node, f"{ros_type}_FeedbackMessage", f"{name}{ACTION_FEEDBACK}", self._feed_back, DEFAULT, in_action=True
        )
        # Like rclcpp's client, it takes statuses and ignores them: the result has the same information.
        self._status = Subscription(
            node, _STATUS_ARRAY, f"{name}{ACTION_STATUS}", lambda _: None, STATUS, in_action=True
        )
        node.executor.add(self._feedback)
        node.executor.add(self._status)
        self._goal_id: str | None = None
        self._on_feedback: Callable[[Message], None] = lambda _: None

    def server_is_ready(self) -> bool:
        clients = (self._send_goal, self._cancel_goal, self._get_result)
        topics = (self._feedback, self._status)
        return all(client.server_is_ready() for client in clients) and all(topic.matched() for topic in topics)

    def send_goal(
        self,
        goal_id: str,
        goal: Message,
        *,
        on_response: Callable[[bool], None],
        on_feedback: Callable[[Message], None],
        on_result: Callable[[GoalStatus, Message], None],
    ) -> None:
        """Sends a goal, and requests its result as soon as it is accepted."""
        self._goal_id = goal_id
        self._on_feedback = on_feedback

        def answer(response: Message) -> None:
            on_response(bool(response.accepted))
            if response.accepted:
                self._get_result.call(hand_over, goal_id=to_uuid(goal_id))

        def hand_over(response: Message) -> None:
            on_result(GoalStatus(response.status), response.result)

        self._send_goal.call(answer, goal_id=to_uuid(goal_id), goal=goal)

    def cancel_goal(self, goal_id: str) -> None:
        self._cancel_goal.call(lambda _: None, goal_info=default("action_msgs/msg/GoalInfo", goal_id=to_uuid(goal_id)))

    def _feed_back(self, message: Message) -> None:
        if from_uuid(message.goal_id) == self._goal_id:
            self._on_feedback(message.feedback)


_SET_PARAMETERS: Final = "rcl_interfaces/srv/SetParameters"

"""Takes a `rcl_interfaces/msg/ParameterValue`; returns the reason if it cannot be set, otherwise ``""``."""


class ParameterType(IntEnum):
    NOT_SET = 0
    INTEGER = 2


class IntegerParameters:
    """Integer parameters of a node that other nodes may set; ``None`` initially and after `ParameterType.NOT_SET`."""

    def __init__(self, node: Node, names: tuple[str, ...]) -> None:
        self._values: dict[str, int | None] = dict.fromkeys(names)
        Service(node, _SET_PARAMETERS, f"/{node.name}/set_parameters", self._set_parameters)

    def _set_parameters(self, request: Message, replier: Replier) -> None:
        reasons = [self._set(each.name, each.value) for each in request.parameters]
        kind = "rcl_interfaces/msg/SetParametersResult"
        replier.reply(results=[default(kind, successful=not reason, reason=reason) for reason in reasons])

    def __getitem__(self, name: str) -> int | None:
        return self._values[name]

    def _set(self, name: str, value: Message) -> str:
        if name not in self._values:
            return f"parameter '{name}' is not declared"
        if value.type not in {ParameterType.NOT_SET, ParameterType.INTEGER}:
            return f"parameter '{name}' is an integer"
        self._values[name] = value.integer_value if value.type == ParameterType.INTEGER else None
        return ""


class ParameterClient(Client):
    """Sets parameters of another node, whose name is `target`, without the slash before it."""

    def __init__(self, node: Node, target: str) -> None:
        super().__init__(node, _SET_PARAMETERS, f"/{target}/set_parameters")

    def set(self, values: Mapping[str, int | None], on_done: Callable[[list[str]], None]) -> None:
        """Sets `values`; `on_done` gets the reasons for refused values."""

        def finish(response: Message) -> None:
            on_done([result.reason for result in response.results if not result.successful])

        self.call(finish, parameters=[_parameter(name, value) for name, value in values.items()])


def _parameter(name: str, value: int | None) -> Any:
    kind = "rcl_interfaces/msg/ParameterValue"
    if value is None:
        content = default(kind, type=int(ParameterType.NOT_SET))
    else:
        content = default(kind, type=int(ParameterType.INTEGER), integer_value=value)
    return default("rcl_interfaces/msg/Parameter", name=name, value=content)
