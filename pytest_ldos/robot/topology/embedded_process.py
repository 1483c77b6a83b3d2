"""A process of the embedded node layer that runs nodes of a topology.

It prints reports to standard output and reads commands from standard input, one JSON object per line, like the
workspace's `ldos_topology`. It reports ``waiting`` (for which peers) and ``matched``; receives ``start_ns`` and
``end_ns``; reports ``resources`` periodically, and ``sent`` (counts by id); receives ``drain`` with all counts;
reports ``done``.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.robot.dds.action import Client, Replier, Service
from pytest_ldos.robot.dds.endpoint import Message, QosProfile, WriteTimedOut, default
from pytest_ldos.robot.dds.node import Context, Node, Publisher, Subscription, run_node
from pytest_ldos.robot.topology.conversation import Sample, SampleFile

_USED = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
_KIB: Final = 1024
_STATM: Final = Path("/proc/self/statm")


class _Mallinfo2(ctypes.Structure):
    """``struct mallinfo2`` of glibc's malloc.h."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in _USED)


def own_resources() -> dict[str, int]:
    """Returns CPU time since the start (``cpu_ns``), and memory in KiB according to glibc and the kernel.

    ``arena_kb`` is the allocator's memory from ``sbrk``, ``mmap_kb`` that from ``mmap``, ``in_use_kb`` the allocated
    part; all are zero with another C library, or glibc before 2.33.

    Reference: mallinfo(3), proc_pid_statm(5).
    """
    virtual_pages, resident_pages = (int(word) for word in _STATM.read_text("ascii").split()[:2])
    page_kb = os.sysconf("SC_PAGESIZE") // _KIB
    found = _mallinfo2()()
    return {
        "cpu_ns": time.process_time_ns(),
        "arena_kb": found.arena // _KIB,
        "in_use_kb": found.uordblks // _KIB,
        "mmap_kb": found.hblkhd // _KIB,
        "rss_kb": resident_pages * page_kb,
        "vsz_kb": virtual_pages * page_kb,
    }


@cache
def _mallinfo2() -> Any:
    function = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if function is None:
        return _Mallinfo2  # zeros
    function.restype = _Mallinfo2
    return function


MESSAGE: Final = "ldos_topology_msgs/msg/Stamped"
SERVICE: Final = "ldos_topology_msgs/srv/Stamped"

_LOOK_S: Final = 0.01
_TELL_S: Final = 1.0
_DRAIN_S: Final = 1.0


class _Sender:
    def __init__(self, node: Node, plan: Mapping[str, Any]) -> None:
        self.id: int = plan["id"]
        self.period_ns: int = plan["period_ns"]
        self.readers: int = plan["readers"]
        self.sent = 0
        self.publisher: Publisher = node.create_publisher(MESSAGE, plan["topic"], qos=QosProfile(**plan["qos"]))
        self._message = default(MESSAGE, publisher=self.id, data=_payload(plan))

    def send(self) -> None:
        self._message.tracking_number = self.sent
        self.sent += 1
        self._message.sent_ns = time.monotonic_ns()
        with contextlib.suppress(WriteTimedOut):  # its number is missing at the readers, so that it counts as lost
            self.publisher.publish(self._message)


class _Asker:
    def __init__(self, node: Node, plan: Mapping[str, Any], samples: SampleFile) -> None:
        self.id: int = plan["id"]
        self.period_ns: int = plan["period_ns"]
        self.sent = 0
        self.client = Client(node, SERVICE, plan["service"])
        self._payload = _payload(plan)
        self._samples = samples

    def send(self) -> None:
        number = self.sent
        self.sent += 1
        fields = {"client": self.id, "tracking_number": number, "data": self._payload}
        with contextlib.suppress(WriteTimedOut):
            self.client.call(self._take, sent_ns=time.monotonic_ns(), **fields)

    def _take(self, response: Message) -> None:
        now_ns = time.monotonic_ns()
        self._samples.add(Sample(self.id, self.id, response.tracking_number, response.sent_ns, now_ns))


class _Taker:
    def __init__(self, node: Node, plan: Mapping[str, Any], samples: SampleFile) -> None:
        self.id: int = plan["id"]
        self.writers: list[int] = plan["writers"]
        self._samples = samples
        self.subscription: Subscription = node.create_subscription(
            MESSAGE, plan["topic"], self._take, qos=QosProfile(**plan["qos"])
        )

    def _take(self, message: Message) -> None:
        now_ns = time.monotonic_ns()
        self._samples.add(Sample(self.id, message.publisher, message.tracking_number, message.sent_ns, now_ns))


def _payload(plan: Mapping[str, Any]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.zeros(plan["size_bytes"], dtype=np.uint8)


class _Input:
    """Lines of standard input, with a time limit for each wait."""

    def __init__(self) -> None:
        self._text = b""

    def next(self, deadline_ns: int | None = None) -> str | None:
        """Returns the next line; ``None`` after the time limit. Raises `EOFError` at the end of standard input."""
        while b"\n" not in self._text:
            left_s = None if deadline_ns is None else max(0, deadline_ns - time.monotonic_ns()) / NS_PER_S
            if not select.select([0], [], [], left_s)[0]:
                return None
            piece = os.read(0, 65536)
            if not piece:
                raise EOFError
            self._text += piece
        line, _, self._text = self._text.partition(b"\n")
        return line.decode()


class _Part:
    def __init__(self, context: Context, plan: Mapping[str, Any]) -> None:
        self._executor = context.executor
        self._samples = SampleFile(plan["samples"])
        self._sampling_ns: int = plan["sampling_ns"]
        self._senders: list[tuple[Node, _Sender | _Asker]] = []
        self._takers: list[tuple[Node, _Taker]] = []
        self._is_sending = threading.Event()
        self._input = _Input()
        for ours in plan["nodes"]:
            node = Node(context, f"{ours['namespace'].rstrip('/')}/{ours['name']}".strip("/"))
            self._senders += [(node, _Sender(node, each)) for each in ours["publishers"]]
            self._takers += [(node, _Taker(node, each, self._samples)) for each in ours["subscriptions"]]
            self._senders += [(node, _Asker(node, each, self._samples)) for each in ours["clients"]]
            for service in ours["services"]:
                Service(node, SERVICE, service, self._reply)

    def _reply(self, request: Message, replier: Replier) -> None:
        replier.reply(tracking_number=request.tracking_number, sent_ns=request.sent_ns, data=request.data)

    def drive(self) -> None:
        """Runs from matching to draining, then stops the executor."""
        try:
            self._await_peers()
            early = self._send()
            _say(event="sent", counts={each.id: each.sent for _, each in self._senders})
            self._await_messages(json.loads(early or self._input.next() or "")["drain"])
            self._samples.flush()
            _say(event="done")
        except EOFError:
            pass  # the parent has exited
        finally:
            self._executor.stop()

    def _await_peers(self) -> None:
        told_s = time.monotonic()
        while waiting := list(self._unmatched()):
            if time.monotonic() - told_s > _TELL_S:
                _say(**{"event": "waiting", "for": waiting})
                told_s = time.monotonic()
            time.sleep(_LOOK_S)
        matched_ns = time.monotonic_ns()
        gc.collect()
        gc.disable()  # garbage collection would delay messages
        _say(event="matched", mono_ns=matched_ns)

    def _unmatched(self) -> Iterator[str]:
        for node, sender in self._senders:
            if isinstance(sender, _Asker):
                if not sender.client.server_is_ready():
                    yield f"/{node.name} asking {sender.client.name}"
            elif sender.publisher.matched() < sender.readers:
                yield f"/{node.name} publishing {sender.publisher.topic}"
        for node, taker in self._takers:
            if taker.subscription.matched() < len(taker.writers):
                yield f"/{node.name} subscribing {taker.subscription.topic}"

    def _send(self) -> str | None:
        """Sends from start to end, and reports resources periodically; returns the line that ended it early."""
        command = json.loads(self._input.next() or "")
        early = self._input.next(command["start_ns"])
        self._executor.post(self._begin)
        due_ns, end_ns = command["start_ns"], command["end_ns"]
        while early is None and due_ns is not None:
            early = self._input.next(due_ns)
            self._samples.flush()
            _say(event="resources", mono_ns=time.monotonic_ns(), **own_resources())
            due_ns = min(due_ns + self._sampling_ns, end_ns) if due_ns < end_ns else None
        self._end()
        return early

    def _begin(self) -> None:
        self._is_sending.set()
        for node, sender in self._senders:
            node.create_timer(sender.period_ns, self._while_sending(sender.send))

    def _while_sending(self, send: Callable[[], None]) -> Callable[[], None]:
        def send_now() -> None:
            if self._is_sending.is_set():
                send()

        return send_now

    def _end(self) -> None:
        """Waits until the executor has stopped sending."""
        ended = threading.Event()

        def end() -> None:
            self._is_sending.clear()
            ended.set()

        self._executor.post(end)
        ended.wait()

    def _await_messages(self, sent: Mapping[str, int]) -> None:
        pairs = [(taker.id, writer) for _, taker in self._takers for writer in taker.writers]
        pairs += [(each.id, each.id) for _, each in self._senders if isinstance(each, _Asker)]
        deadline_s = time.monotonic() + _DRAIN_S
        while time.monotonic() < deadline_s and not all(
            self._samples.has_all(receiver, sender, sent.get(str(sender), 0)) for receiver, sender in pairs
        ):
            time.sleep(_LOOK_S)


def _say(**report: Any) -> None:
    os.write(sys.stdout.fileno(), (json.dumps(report) + "\n").encode())


def build(context: Context, parameters: dict[str, Any]) -> None:
    """Builds the nodes of the file in parameter ``plan`` (see `encode_plan`)."""
    part = _Part(context, json.loads(Path(parameters["plan"]).read_text("utf-8")))
    threading.Thread(target=part.drive, name="topology", daemon=True).start()


if __name__ == "__main__":
    run_node("topology", build)
