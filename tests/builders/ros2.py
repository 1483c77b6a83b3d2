"""Recordings of ROS 2 systems made by hand, as decoded traces: no bytes are written or read.

`Recording` holds events; processes, nodes and what belongs to them write the events that rclcpp, rcl and
the middleware of ROS 2 Jazzy write, in their order. A thread has a clock of its own that each event moves on
by 1 ns, so a test plants durations by `at` and `spend`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from pytest_ldos.base.ros2 import FIELDS, Caret, Ros2
from pytest_ldos.trace.ctf.read import Column, DecodedTrace, EventTable
from pytest_ldos.trace.ctf.stats import Gap, ReadStats, StreamStats, TraceInfo
from pytest_ldos.trace.execution.build import build_execution
from pytest_ldos.trace.execution.model import ExecutionModel

HOST = "arm"
KNOWN: dict[str, tuple[str, ...]] = {**FIELDS, **{each: each.fields for each in Caret}}
SIGNED = {
    "timestamp",
    "source_timestamp",
    "timeout",
    "period",
    "taken",
    "is_intra_process",
    "overwritten",
    "error_code",
}
BLOCK = 0x100
"""Distance between the addresses of two objects of a process."""


@dataclass
class Row:
    time_ns: int
    host: str
    pid: int
    tid: int
    name: str
    fields: Mapping[str, Any]


@dataclass
class Recording:
    """Events of any number of hosts.

    Attributes:
        announcing: whether what is made writes its init events; false for tracing that starts late.
        skew_ns: how far the clock of a host is ahead of the true time.
    """

    announcing: bool = True
    skew_ns: dict[str, int] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    moment: int = 1
    """Time of the next init event without its own time."""

    def emit(
        self,
        event: str,
        time_ns: int,
        *,
        pid: int = 1,
        tid: int | None = None,
        host: str = HOST,
        name: str = "app",
        **fields: Any,
    ) -> None:
        """One event at a true time."""
        assert set(fields) == set(KNOWN[event]), f"{event} has {KNOWN[event]}"
        time_ns += self.skew_ns.get(host, 0)
        self.rows.append(Row(time_ns, host, pid, pid if tid is None else tid, name, {"event": event, **fields}))

    def process(self, pid: int = 1, *, host: str = HOST, name: str = "app") -> Process:
        return Process(self, pid, host, name)

    def trace(
        self,
        *,
        gaps: Sequence[Gap] = (),
        events: Collection[str] | None = None,
        without: Collection[str] = (),
        address_bits: int = 64,
    ) -> DecodedTrace:
        """The trace as read: only some `events`, `without` some fields or contexts."""
        hosts = sorted({row.host for row in self.rows}) or [HOST]
        grouped: dict[str, list[Row]] = {}
        for row in sorted(self.rows, key=lambda row: row.time_ns):
            grouped.setdefault(row.fields["event"], []).append(row)
        unsigned = np.uint64 if address_bits == 64 else np.uint32
        tables = {
            name: _table(name, rows, hosts, without=set(without), unsigned=unsigned)
            for name, rows in grouped.items()
            if events is None or name in events
        }
        stream = StreamStats(Path("channel_0"), 0, 1, len(self.rows), 0, tuple(gaps))
        infos = tuple(TraceInfo(Path(host), {"hostname": host}, "monotonic", 0) for host in hosts)
        return DecodedTrace(Path("recording"), tables, infos, ReadStats((stream,)))

    def model(self, *, pids: Collection[int] | None = None, **options: Any) -> ExecutionModel:
        return build_execution(self.trace(**options), pids=pids)


def _table(name: str, rows: Sequence[Row], hosts: Sequence[str], *, without: set[str], unsigned: Any) -> EventTable:
    times = np.array([row.time_ns for row in rows], dtype=np.int64)
    of_host = np.array([hosts.index(row.host) for row in rows], dtype=np.uint32)
    columns = {
        "vpid": Column(name="vpid", values=np.array([row.pid for row in rows], dtype=np.int32)),
        "vtid": Column(name="vtid", values=np.array([row.tid for row in rows], dtype=np.int32)),
        "procname": _column("procname", [row.name for row in rows], unsigned),
    }
    columns |= {each: _column(each, [row.fields[each] for row in rows], unsigned) for each in KNOWN[name]}
    kept = {each: column for each, column in columns.items() if each not in without}
    return EventTable(name, times, np.zeros(len(rows), dtype=np.int32), of_host, kept)


def _column(name: str, values: list[Any], unsigned: Any) -> Column:
    if isinstance(values[0], str):
        words = sorted(set(values))
        codes = np.array([words.index(value) for value in values], dtype=np.uint32)
        return Column(name=name, values=codes, dictionary=tuple(words))
    if isinstance(values[0], bytes):
        return Column(name=name, values=np.array([list(value) for value in values], dtype=np.uint8))
    if isinstance(values[0], list):
        offsets = np.cumsum([0, *map(len, values)])
        return Column(name=name, values=np.array([*chain.from_iterable(values)], dtype=unsigned), offsets=offsets)
    signed = name in SIGNED or name.endswith("_ns")
    return Column(name=name, values=np.array(values, dtype=np.int64 if signed else unsigned))


@dataclass(frozen=True)
class Message:
    """Something that was published: its source time stamp, and the slots it was put in within the process."""

    stamp_ns: int
    slots: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Entity:
    """An object with addresses in a process. Others than `handle` are at fixed offsets after it."""

    process: Process
    handle: int
    topic: str = ""

    @property
    def rmw(self) -> int:
        return self.handle + 0x10

    @property
    def object(self) -> int:
        return self.handle + 0x20

    @property
    def callback(self) -> int:
        return self.handle + 0x30

    @property
    def buffer(self) -> int:
        return self.handle + 0x40

    def intra(self) -> Entity:
        """The second object and callback of a subscription with intra-process communication."""
        return Entity(self.process, self.handle + 0x80, self.topic)


@dataclass(eq=False)
class Process:
    recording: Recording
    pid: int
    host: str
    name: str
    used: int = 0x1000
    """The address that was given out last: every process gives out the same ones."""

    def thread(self, tid: int | None = None) -> Thread:
        return Thread(self, self.pid if tid is None else tid)

    def node(self, name: str, *, address: int | None = None, at: int | None = None) -> Node:
        entity = self.entity(address)
        namespace, _, own = name.rpartition("/")
        self.announce(
            at, (Ros2.NODE_INIT, {"node_handle": entity.handle, "rmw_handle": entity.rmw, "node_name": own, "namespace": namespace or "/"})
        )  # fmt: skip
        return Node(self, entity.handle)

    def entity(self, address: int | None, topic: str = "") -> Entity:
        if address is None:
            self.used += BLOCK
            address = self.used
        return Entity(self, address, topic)

    def announce(self, at: int | None, *events: tuple[str, Mapping[str, Any]]) -> None:
        """Init events, 1 ns apart, unless the recording begins later."""
        recording = self.recording
        if not recording.announcing:
            return
        first = recording.moment if at is None else at
        for number, (event, fields) in enumerate(events):
            recording.emit(event, first + number, pid=self.pid, host=self.host, name=self.name, **fields)
        recording.moment = max(recording.moment, first + len(events))


@dataclass(frozen=True)
class Node:
    process: Process
    handle: int

    def publisher(self, topic: str, *, address: int | None = None, at: int | None = None) -> Entity:
        entity = self.process.entity(address, topic)
        gid = entity.handle.to_bytes(8, "big") * 3
        init = {"publisher_handle": entity.handle, "node_handle": self.handle, "rmw_publisher_handle": entity.rmw}
        self.process.announce(
            at,
            (Ros2.RMW_PUBLISHER_INIT, {"rmw_publisher_handle": entity.rmw, "gid": gid}),
            (Ros2.PUBLISHER_INIT, init | {"topic_name": topic, "queue_depth": 10}),
        )
        return entity

    def subscription(
        self,
        topic: str,
        *,
        symbol: str = "on_message",
        intra: bool = False,
        address: int | None = None,
        at: int | None = None,
    ) -> Entity:
        """With `intra`, a second object is announced after its callback was added, as rclcpp does."""
        entity = self.process.entity(address, topic)
        gid = entity.handle.to_bytes(8, "big") * 3
        init = {"subscription_handle": entity.handle, "node_handle": self.handle, "rmw_subscription_handle": entity.rmw}
        second = entity.intra()
        within = [
            (Ros2.BUFFER_TO_IPB, {"buffer": entity.buffer, "ipb": entity.buffer + 1}),
            (Ros2.IPB_TO_SUBSCRIPTION, {"ipb": entity.buffer + 1, "subscription": second.object}),
            *_added(second, symbol),
            (Ros2.RCLCPP_SUBSCRIPTION_INIT, {"subscription_handle": entity.handle, "subscription": second.object}),
        ]
        self.process.announce(
            at,
            (Ros2.RMW_SUBSCRIPTION_INIT, {"rmw_subscription_handle": entity.rmw, "gid": gid}),
            (Ros2.SUBSCRIPTION_INIT, init | {"topic_name": topic, "queue_depth": 10}),
            *(within if intra else []),
            (Ros2.RCLCPP_SUBSCRIPTION_INIT, {"subscription_handle": entity.handle, "subscription": entity.object}),
            *_added(entity, symbol),
        )
        return entity

    def timer(
        self, period_ns: int, *, address: int | None = None, at: int | None = None, linked_at: int | None = None
    ) -> Entity:
        entity = self.process.entity(address)
        self.process.announce(
            at,
            (Ros2.TIMER_INIT, {"timer_handle": entity.handle, "period": period_ns}),
            (Ros2.TIMER_CALLBACK_ADDED, {"timer_handle": entity.handle, "callback": entity.callback}),
            (Ros2.CALLBACK_REGISTER, {"callback": entity.callback, "symbol": "on_timer"}),
        )
        link = {"timer_handle": entity.handle, "node_handle": self.handle}
        self.process.announce(linked_at, (Ros2.TIMER_LINK_NODE, link))
        return entity

    def service(self, name: str, *, address: int | None = None, at: int | None = None) -> Entity:
        entity = self.process.entity(address, name)
        init = {"service_handle": entity.handle, "node_handle": self.handle, "rmw_service_handle": entity.rmw}
        self.process.announce(
            at,
            (Ros2.SERVICE_INIT, init | {"service_name": name}),
            (Ros2.SERVICE_CALLBACK_ADDED, {"service_handle": entity.handle, "callback": entity.callback}),
            (Ros2.CALLBACK_REGISTER, {"callback": entity.callback, "symbol": "on_request"}),
        )
        return entity

    def client(self, name: str) -> Entity:
        entity = self.process.entity(None, name)
        init = {"client_handle": entity.handle, "node_handle": self.handle, "rmw_client_handle": entity.rmw}
        self.process.announce(None, (Ros2.CLIENT_INIT, init | {"service_name": name}))
        return entity

    def link(self, event: str, inputs: Sequence[Entity], outputs: Sequence[Entity]) -> None:
        """An annotation of an indirect causal link."""
        subs, pubs = [each.handle for each in inputs], [each.handle for each in outputs]
        fields = {"_subs_length": len(subs), "subs": subs, "_pubs_length": len(pubs), "pubs": pubs}
        self.process.announce(None, (event, fields))


def _added(entity: Entity, symbol: str) -> list[tuple[str, Mapping[str, Any]]]:
    return [
        (Ros2.SUBSCRIPTION_CALLBACK_ADDED, {"subscription": entity.object, "callback": entity.callback}),
        (Ros2.CALLBACK_REGISTER, {"callback": entity.callback, "symbol": symbol}),
    ]


@dataclass
class Thread:
    """Events of one thread, at its own `now`."""

    process: Process
    tid: int
    now: int = 0

    def at(self, time_ns: int) -> Thread:
        self.now = time_ns
        return self

    def spend(self, duration_ns: int) -> Thread:
        self.now += duration_ns
        return self

    def emit(self, event: str, **fields: Any) -> int:
        """Writes an event now, and moves the clock on; returns when that was."""
        owner = self.process
        owner.recording.emit(event, self.now, pid=owner.pid, tid=self.tid, host=owner.host, name=owner.name, **fields)
        self.now += 1
        return self.now - 1

    def publish(
        self,
        publisher: Entity,
        *,
        stamp_ns: int | None = None,
        rcl_handle: int | None = None,
        layers: Collection[str] = (Ros2.RCLCPP_PUBLISH, Ros2.RCL_PUBLISH),
    ) -> Message:
        """Takes 3 ns: one for each layer. The stamp is the host's time of the last."""
        message = publisher.handle + 0x8000 + self.now % 7
        if Ros2.RCLCPP_PUBLISH in layers:
            self.emit(Ros2.RCLCPP_PUBLISH, message=message)
        if Ros2.RCL_PUBLISH in layers:
            handle = publisher.handle if rcl_handle is None else rcl_handle
            self.emit(Ros2.RCL_PUBLISH, publisher_handle=handle, message=message)
        stamp = self.now + self.process.recording.skew_ns.get(self.process.host, 0) if stamp_ns is None else stamp_ns
        self.emit(Ros2.RMW_PUBLISH, rmw_publisher_handle=publisher.rmw, message=message, timestamp=stamp)
        return Message(stamp)

    def take(
        self,
        subscription: Entity,
        message: Message | None,
        *,
        layers: Collection[str] = (Ros2.RCL_TAKE, Ros2.RCLCPP_TAKE),
    ) -> Thread:
        """Takes 3 ns: one for each layer; without a message the take gives nothing."""
        address = subscription.handle + 0x9000
        self.emit(
            Ros2.RMW_TAKE,
            rmw_subscription_handle=subscription.rmw,
            message=address,
            source_timestamp=message.stamp_ns if message else 0,
            taken=int(message is not None),
        )
        for layer in (Ros2.RCL_TAKE, Ros2.RCLCPP_TAKE):
            if layer in layers and (message or layer == Ros2.RCL_TAKE):
                self.emit(layer, message=address)
        return self

    def publish_intra(self, publisher: Entity, slots: Mapping[Entity, int], *, overwritten: bool = False) -> Message:
        """Into a slot of the ring buffer of each subscription."""
        self.emit(Ros2.INTRA_PUBLISH, publisher_handle=publisher.handle, message=publisher.handle + 0x8000)
        for subscription, slot in slots.items():
            where = {"buffer": subscription.buffer, "index": slot, "size": 1}
            self.emit(Ros2.RING_BUFFER_ENQUEUE, **where, overwritten=int(overwritten))
        return Message(0, {subscription.buffer: slot for subscription, slot in slots.items()})

    def take_intra(self, subscription: Entity, message: Message) -> Thread:
        slot = message.slots[subscription.buffer]
        self.emit(Ros2.RING_BUFFER_DEQUEUE, buffer=subscription.buffer, index=slot, size=0)
        return self

    @contextmanager
    def running(self, entity: Entity, *, intra: bool = False, ends: bool = True) -> Iterator[Thread]:
        """A run of the callback of a timer, service or subscription."""
        callback = entity.intra().callback if intra else entity.callback
        self.emit(Ros2.CALLBACK_START, callback=callback, is_intra_process=int(intra))
        yield self
        if ends:
            self.emit(Ros2.CALLBACK_END, callback=callback)

    @contextmanager
    def receiving(self, subscription: Entity, message: Message) -> Iterator[Thread]:
        """Takes a message, one way or the other, and runs the callback with it."""
        intra = bool(message.slots)
        (self.take_intra if intra else self.take)(subscription, message)
        with self.running(subscription, intra=intra):
            yield self

    def wait(self, until_ns: int, *, timeout_ns: int = -1) -> Thread:
        """Waits for work, from now until then."""
        self.emit(Ros2.EXECUTOR_WAIT_FOR_WORK, timeout=timeout_ns)
        self.at(until_ns).emit(Ros2.EXECUTOR_GET_NEXT_READY)
        return self

    def execute(self, entity: Entity) -> Thread:
        """Chooses what to execute."""
        self.emit(Ros2.EXECUTOR_EXECUTE, handle=entity.handle)
        return self
