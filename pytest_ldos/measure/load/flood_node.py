"""Processes of a flood: publishers of `std_msgs/String` at a fixed rate, and a counter of what arrives.

A publisher's schedule is absolute: a late message is sent at once, so that the mean rate holds. The counter is an
instrument, not a part of the load: it reads in batches, without tracepoints.

Ten times per second each prints a JSON line: ``mono_ns``, and by topic ``published``, or ``received`` and ``lost``. A
publisher also prints ``given_up`` (messages that were due and will not be sent), ``error_bins`` (by bin) and ``final``.
"""

from __future__ import annotations

import gc
import itertools
import json
import math
import os
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from pytest_ldos.base.text import NS_PER_MS, NS_PER_S
from pytest_ldos.measure.load.flood_reports import bin_of
from pytest_ldos.scenario.loads import SEQUENCE_BYTES

if TYPE_CHECKING:
    from pytest_ldos.robot.dds.node import Context


@dataclass(frozen=True, kw_only=True)
class FloodSchedule:
    """Bursts at equal intervals from a fixed start, so that a late burst does not delay later ones.

    Publishers are interleaved: each sends at its own rate, evenly between the others' bursts. A slot is the number of a
    message of all publishers.
    """

    rate_hz: float  # of each publisher
    burst: int  # messages that one publisher sends at once
    publishers: int
    begin_ns: int

    @property
    def _between_bursts_ns(self) -> float:
        return NS_PER_S * self.burst / (self.rate_hz * self.publishers)

    def due_ns(self, slot: int) -> int:
        return self.begin_ns + math.ceil(slot // self.burst * self._between_bursts_ns)

    def publisher_of(self, slot: int) -> int:
        return slot // self.burst % self.publishers

    def due_by(self, now_ns: int) -> int:
        """Number of messages due at or before a time."""
        if now_ns < self.begin_ns:
            return 0
        bursts = int((now_ns - self.begin_ns) / self._between_bursts_ns) + 1
        # The division is rounded; `due_ns` decides.
        while self.due_ns(bursts * self.burst) <= now_ns:
            bursts += 1
        while bursts > 1 and self.due_ns((bursts - 1) * self.burst) > now_ns:
            bursts -= 1
        return bursts * self.burst


_TEXT_AT: Final = 8  # offset of the text, after CDR's header and the length of the text
_END: Final = _TEXT_AT + SEQUENCE_BYTES


class NumberedText:
    def __init__(self, size_bytes: int) -> None:
        data = struct.pack("<4sI", b"\0\1\0\0", size_bytes + 1) + b"X" * size_bytes + b"\0"
        data = data.ljust(-(-len(data) // 4) * 4, b"\0")  # as Cyclone pads
        self._head, self._tail = data[:_TEXT_AT], data[_END:]

    def message(self, number: int) -> bytes:
        return b"%b%016x%b" % (self._head, number, self._tail)


def number_of(data: bytes) -> int:
    """Number of an encoded message; raises `ValueError` for that of another program."""
    return int(data[_TEXT_AT:_END], 16)


_LONGEST_LAG_NS: Final = 250 * NS_PER_MS  # later messages are dropped and counted, or a burst would not end
_LONGEST_SLEEP_NS: Final = 50 * NS_PER_MS  # a longer sleep would delay the end
_REPORT_EVERY_NS: Final = 100 * NS_PER_MS
_REPORT_PATIENCE_NS: Final = 20 * NS_PER_MS
_REPORT_TAKES_NS: Final = 150_000
SENDING: Final = ("rate_hz", "burst", "size_bytes", "awaits_readers")
"""Parameters of `Flood`."""
_HEAD_START_NS: Final = 20 * NS_PER_MS
_MATCH_POLL_S: Final = 0.01


class Sender(Protocol):
    """A publisher of `std_msgs/String`."""

    topic: str

    def publish_encoded(self, data: bytes) -> None:
        """Raises `TimeoutError` if a reliable publisher waited too long for its readers."""

    def matched(self) -> int: ...


class Flood:
    """Sends on all topics of this process.

    It begins when `may_begin` returns True and, if it `awaits_readers`, each topic has a reader.
    """

    def __init__(
        self,
        publishers: Sequence[Sender],
        *,
        rate_hz: float,
        burst: int,
        size_bytes: int,
        awaits_readers: bool,
        may_begin: Callable[[], bool] = lambda: True,
    ) -> None:
        self._publishers = publishers
        self._texts = NumberedText(size_bytes)
        self._awaits_readers = awaits_readers
        self._may_begin = may_begin
        self._stopping = threading.Event()
        self._published = [0] * len(publishers)
        self._given_up = 0
        self._error_bins: dict[int, int] = {}
        self._previous: list[tuple[int, int] | None] = [None] * len(publishers)
        self._report_due_ns = 0
        begin_ns = time.monotonic_ns()
        self._schedule = FloodSchedule(rate_hz=rate_hz, burst=burst, publishers=len(publishers), begin_ns=begin_ns)
        self._thread = threading.Thread(target=self._run, name="flood")
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        publishers = self._publishers if self._awaits_readers else ()
        while not (self._may_begin() and all(publisher.matched() for publisher in publishers)):
            if self._stopping.wait(_MATCH_POLL_S):
                return
        gc.collect()
        gc.disable()  # a collection would delay messages
        begin_ns = time.monotonic_ns() + _HEAD_START_NS
        self._schedule = replace(self._schedule, begin_ns=begin_ns)
        slot = 0
        self._report_due_ns = begin_ns
        while not self._stopping.is_set():
            now_ns = time.monotonic_ns()
            due_ns = self._schedule.due_ns(slot)
            late_ns = now_ns - self._report_due_ns
            # A report fits before the next message, or is overdue because messages leave no gap for it.
            if late_ns > _REPORT_PATIENCE_NS or (late_ns >= 0 and due_ns - now_ns > _REPORT_TAKES_NS):
                self._report(now_ns, is_final=False)
            elif now_ns < due_ns:
                time.sleep(min(due_ns - now_ns, _LONGEST_SLEEP_NS) / NS_PER_S)
            elif now_ns - due_ns > _LONGEST_LAG_NS:
                next_slot = max(self._schedule.due_by(now_ns), slot + 1)
                self._given_up += next_slot - slot
                slot = next_slot
            else:
                self._send(self._schedule.publisher_of(slot), now_ns, due_ns)
                slot += 1
        self._report(time.monotonic_ns(), is_final=True)

    def _send(self, which: int, now_ns: int, due_ns: int) -> None:
        try:
            self._publishers[which].publish_encoded(self._texts.message(self._published[which]))
        except TimeoutError:
            self._given_up += 1
            return
        self._published[which] += 1
        sent_ns, was_due_ns = self._previous[which] or (now_ns, due_ns)
        number = bin_of((now_ns - sent_ns) - (due_ns - was_due_ns))
        self._error_bins[number] = self._error_bins.get(number, 0) + 1
        self._previous[which] = (now_ns, due_ns)

    def _report(self, now_ns: int, *, is_final: bool) -> None:
        published = {each.topic: count for each, count in zip(self._publishers, self._published, strict=True)}
        report = {
            "mono_ns": now_ns,
            "published": published,
            "given_up": self._given_up,
            "error_bins": self._error_bins,
            "final": is_final,
        }
        self._report_due_ns = now_ns + _REPORT_EVERY_NS
        os.write(sys.stdout.fileno(), (json.dumps(report) + "\n").encode())


def build_publisher(context: Context, parameters: dict[str, Any]) -> Callable[[], None]:
    """Builds the node of a publisher; `flood_programs` has its parameters."""
    from pytest_ldos.robot.dds.endpoint import QosProfile  # noqa: PLC0415 - for the embedded stack only
    from pytest_ldos.robot.dds.node import Node  # noqa: PLC0415

    node = Node(context, parameters["name"])
    qos = QosProfile(depth=parameters["depth"], reliable=parameters["reliable"])
    flood = Flood(
        [node.create_publisher("std_msgs/msg/String", topic, qos=qos) for topic in parameters["topics"]],
        **{name: parameters[name] for name in SENDING},
    )
    limit = threading.Timer(parameters["seconds"], context.executor.stop)
    limit.daemon = True
    limit.start()
    return flood.stop


POLL_NS: Final = 10 * NS_PER_MS
_POLLS_A_REPORT: Final = 10
DEPTH: Final = 4096


class Tally:
    """Counts of one topic: messages of one publisher, in order."""

    def __init__(self) -> None:
        self.received = 0
        self._first: int | None = None
        self._last = 0

    @property
    def lost(self) -> int:
        """Numbers missing between the first and the last message received."""
        return 0 if self._first is None else self._last - self._first + 1 - self.received

    def add(self, batch: Sequence[bytes]) -> None:
        if not batch:
            return
        if self._first is None:
            self._first = number_of(batch[0])
        self._last = number_of(batch[-1])
        self.received += len(batch)


class FloodCounter:
    """Counts messages by topic; `takes` returns those that arrived since its last call."""

    def __init__(self, takes: Mapping[str, Callable[[], Sequence[bytes]]]) -> None:
        self._counted = {topic: (take, Tally()) for topic, take in takes.items()}
        self._polls = itertools.count(1)

    def poll(self) -> None:
        for take, tally in self._counted.values():
            tally.add(take())
        if next(self._polls) % _POLLS_A_REPORT == 0:
            report = {
                "mono_ns": time.monotonic_ns(),
                "received": {topic: tally.received for topic, (_, tally) in self._counted.items()},
                "lost": {topic: tally.lost for topic, (_, tally) in self._counted.items()},
            }
            sys.stdout.write(json.dumps(report) + "\n")
            sys.stdout.flush()


def build_counter(context: Context, parameters: dict[str, Any]) -> Callable[[], None]:
    """Builds node `flood_counter`."""
    from pytest_ldos.robot.dds.endpoint import QosProfile, Reader, dds_topic  # noqa: PLC0415
    from pytest_ldos.robot.dds.node import Node  # noqa: PLC0415

    qos = QosProfile(depth=DEPTH, reliable=parameters["reliable"])
    readers = {
        topic: Reader(context.participant, dds_topic(topic), "std_msgs/msg/String", qos)
        for topic in parameters["topics"]
    }
    counter = FloodCounter({topic: partial(reader.take_many, DEPTH) for topic, reader in readers.items()})
    Node(context, parameters["name"]).create_timer(POLL_NS, counter.poll)
    return lambda: None


if __name__ == "__main__":
    from pytest_ldos.robot.dds.node import run_node

    program = json.loads(sys.argv[1])["program"]
    run_node(program, {"flood_publisher": build_publisher, "flood_counter": build_counter}[program])
