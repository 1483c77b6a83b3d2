"""ROS 2 services over Cyclone DDS, as rmw_cyclonedds maps them.

A request and its reply are topics of their own; both begin with the client's 64-bit id
and a sequence number, by which a client knows its replies.
"""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Callable
from typing import Any, Final

from pytest_ldos.robot.dds.emission import emit, new_handle
from pytest_ldos.robot.dds.endpoint import Reader, ReaderWaitable, Writer, wall_clock_ns
from pytest_ldos.robot.dds.messages import Message, decode, default, encode
from pytest_ldos.robot.dds.naming import dds_reply_topic, dds_request_topic
from pytest_ldos.robot.dds.node import Node, register_callback
from pytest_ldos.robot.dds.qos import SERVICES

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
        self._await_client()
        self._writer.write(encode(response), wall_clock_ns())

    def _await_client(self) -> None:
        """Waits for the client's reply reader, as rmw does: a request can overtake its discovery."""
        deadline = time.monotonic() + _MATCH_WAIT_S
        while self._writer.matched() == 0 and time.monotonic() < deadline:
            time.sleep(_MATCH_POLL_S)


class Service(ReaderWaitable):
    """Answers requests: `on_request` gets each request and its `Replier`.

    Tracepoints: ``rcl_service_init``, and, unless `in_action`,
    ``rclcpp_service_callback_added``, ``rclcpp_callback_register`` and, at each request,
    ``callback_start`` and ``callback_end``.
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
        super().__init__(Reader(participant, dds_request_topic(name), f"{ros_type}_Request", SERVICES))
        self._writer = Writer(participant, dds_reply_topic(name), f"{ros_type}_Response", SERVICES)
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
    """Sends requests and hands each reply to the callback given with its request.

    Tracepoints: ``rcl_client_init``.
    """

    def __init__(self, node: Node, ros_type: str, name: str) -> None:
        self.name = name
        self._ros_type = ros_type
        participant = node.context.participant
        self._writer = Writer(participant, dds_request_topic(name), f"{ros_type}_Request", SERVICES)
        super().__init__(Reader(participant, dds_reply_topic(name), f"{ros_type}_Response", SERVICES))
        self._guid = secrets.randbits(64)
        self._sequence = itertools.count(1)
        self._waiting: dict[int, Callable[[Message], None]] = {}
        emit.rcl_client_init(new_handle(), node.handle, new_handle(), name)
        node.executor.add(self)

    def server_is_ready(self) -> bool:
        """True if a server was discovered for both directions."""
        return self._writer.matched() > 0 and self._reader.matched() > 0

    def call(self, on_reply: Callable[[Message], None], **fields: Any) -> None:
        """Sends a request; `on_reply` runs on the executor's thread."""
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
