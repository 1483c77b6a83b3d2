"""Plans of the processes of a topology, and communication with them; the workspace's `ldos_topology` reads them, too.

Columns: ``receiver`` and ``sender`` (ids of the topology; both are the client for a reply), ``number``, ``sent_ns``,
``received_ns`` (CLOCK_MONOTONIC).
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from pytest_ldos.base.errors import LdosError
from pytest_ldos.host.processes import Child
from pytest_ldos.robot.topology.model import Client, Node, Publisher, Subscription, Topology

_PIECE: Final = 65536

Report = Mapping[str, Any]


class ProcessEnded(LdosError):
    """A process of the topology ended too early; detected at `at_ns`."""

    def __init__(self, child: Child, at_ns: int) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.process.wait(timeout=1)  # its output is closed shortly before it can be reaped
        super().__init__(child.describe_end(), details=child.last_lines())
        self.at_ns = at_ns


class Conversation:
    """Communication with all processes of a topology. Every wait reads their reports."""

    def __init__(self, children: Sequence[Child]) -> None:
        self._children = {child.name: child for child in children}
        self._selector = selectors.DefaultSelector()
        self._text = dict.fromkeys(self._children, b"")
        self._done: set[str] = set()
        self.reports: dict[str, list[Report]] = {name: [] for name in self._children}
        for child in children:
            assert child.process.stdout is not None
            self._selector.register(child.process.stdout, selectors.EVENT_READ, child)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()

    def tell(self, command: Report) -> None:
        """Sends a command to all processes that are still running."""
        line = json.dumps(command) + "\n"
        for child in self._children.values():
            assert child.process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                child.process.stdin.write(line)
                child.process.stdin.flush()

    def await_all(self, event: str, *, limit_s: float, tolerant: bool = False) -> list[str]:
        """Reads until every process has reported an event; returns the names of those without a report in time.

        Raises `ProcessEnded` if a process ended, unless `tolerant`.
        """
        deadline_s = time.monotonic() + limit_s
        while True:
            listening = {key.data.name for key in self._selector.get_map().values()} if tolerant else self._children
            waiting = [name for name in listening if all(each["event"] != event for each in self.reports[name])]
            left_s = deadline_s - time.monotonic()
            if not waiting:
                return []
            if left_s <= 0:
                return waiting
            for ended in self._read(left_s):
                if not tolerant and ended.name not in self._done:
                    raise ProcessEnded(ended, time.monotonic_ns())

    def await_end(self, *, limit_s: float) -> None:
        deadline_s = time.monotonic() + limit_s
        while self._selector.get_map() and (left_s := deadline_s - time.monotonic()) > 0:
            for _ in self._read(left_s):
                pass

    def _read(self, limit_s: float) -> Iterator[Child]:
        """Reads what is available; yields processes whose output ended."""
        for key, _ in self._selector.select(limit_s):
            child: Child = key.data
            piece = os.read(key.fd, _PIECE)
            if not piece:
                self._selector.unregister(key.fileobj)
                yield child
            *lines, self._text[child.name] = (self._text[child.name] + piece).split(b"\n")
            for line in lines:
                with contextlib.suppress(ValueError, TypeError, KeyError):  # lines of the middleware
                    report = json.loads(line)
                    if report["event"] == "done":
                        self._done.add(child.name)
                    self.reports[child.name].append(report)

    def reports_of(self, event: str) -> Iterator[tuple[str, Report]]:
        for name, reports in self.reports.items():
            yield from ((name, each) for each in reports if each["event"] == event)


class Processes(StrEnum):
    ONE = "one"
    NODE = "node"


@dataclass(frozen=True)
class ProcessPlan:
    """The nodes of one process; its name is the node's, or the topology's."""

    name: str
    nodes: tuple[Node, ...]


def spread(topology: Topology, processes: Processes) -> list[ProcessPlan]:
    if processes is Processes.ONE:
        return [ProcessPlan(topology.name, topology.nodes)]
    return [ProcessPlan(node.full_name.replace("/", "."), (node,)) for node in topology.nodes]


def encode_plan(
    topology: Topology, nodes: Sequence[Node], *, samples: str, sampling_ns: int, intra_process: bool
) -> dict[str, Any]:
    """Encodes the plan of one process as JSON; it writes the messages that arrived to the file `samples`."""
    writers: dict[str, list[int]] = {}
    for _, publisher in topology.publishers:
        writers.setdefault(publisher.topic, []).append(publisher.id)
    readers = Counter(subscription.topic for _, subscription in topology.subscriptions)
    return {
        "samples": samples,
        "intra_process": intra_process,
        "sampling_ns": sampling_ns,
        "nodes": [
            {
                "name": node.name,
                "namespace": node.namespace,
                "executor": node.executor,
                "publishers": [
                    {**_end(each), **_traffic(each), "readers": readers[each.topic]} for each in node.publishers
                ],
                "subscriptions": [{**_end(each), "writers": writers[each.topic]} for each in node.subscriptions],
                "clients": [{"id": each.id, "service": each.service, **_traffic(each)} for each in node.clients],
                "services": [each.service for each in node.servers],
            }
            for node in nodes
        ],
    }


def _end(end: Publisher | Subscription) -> dict[str, Any]:
    return {"id": end.id, "topic": end.topic, "qos": asdict(end.qos), "by_unique_ptr": end.by_unique_ptr}


def _traffic(sender: Publisher | Client) -> dict[str, int]:
    return {"size_bytes": sender.size_bytes, "period_ns": sender.period_ns}


COLUMNS: Final = 5
RECORD_BYTES: Final = COLUMNS * 8
RECEIVER, SENDER, NUMBER, SENT_NS, RECEIVED_NS = range(COLUMNS)

Samples = NDArray[np.int64]
"""Shape (messages, `COLUMNS`); the messages of each receiver are in the order of arrival."""


class Sample(NamedTuple):
    receiver: int
    sender: int
    number: int
    sent_ns: int
    received_ns: int


class SampleFile:
    """Samples of the messages received in this process, from any thread."""

    def __init__(self, path: str) -> None:
        self._file = Path(path).open("wb")  # noqa: SIM115 - closed with the process
        self._pending: list[Sample] = []
        self._lock = threading.Lock()
        self._newest: dict[tuple[int, int], int] = {}

    def add(self, sample: Sample) -> None:
        with self._lock:
            self._pending.append(sample)
        key = sample.receiver, sample.sender
        self._newest[key] = max(sample.number, self._newest.get(key, -1))

    def has_all(self, receiver: int, sender: int, sent: int) -> bool:
        """Returns True if the last of `sent` messages has arrived."""
        return self._newest.get((receiver, sender), -1) >= sent - 1

    def flush(self) -> None:
        with self._lock:
            pending, self._pending = self._pending, []
        np.array(pending, dtype=np.int64).tofile(self._file)
        self._file.flush()


def read_samples(files: Iterable[Path]) -> Samples:
    """Reads the samples of processes; drops incomplete records of killed processes."""
    found = [np.empty((0, COLUMNS), dtype=np.int64)]
    for file in files:
        if file.exists():
            data = file.read_bytes()
            whole = len(data) - len(data) % RECORD_BYTES
            found.append(np.frombuffer(data[:whole], dtype=np.int64).reshape(-1, COLUMNS))
    return np.concatenate(found)
