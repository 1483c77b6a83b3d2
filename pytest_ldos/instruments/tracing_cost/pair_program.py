"""A process with a publisher and a subscription in separate nodes that measures publish → callback.

Its settings are ``domain`` and ``match_s``. It answers (see `answer_lines`) ``exchange SIZE_BYTES TICKS RATE_HZ`` with
the number of messages ``published`` and the ``latencies_ns`` of those received; ``tracepoints COUNT`` with ``calls``
and ``elapsed_ns``. Commands and answers are those of the ROS workspace's ``publish_callback``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.host.kept import answer_lines, given_settings
from pytest_ldos.host.processes import comes_true
from pytest_ldos.robot.dds.emission import time_tracepoints
from pytest_ldos.robot.dds.endpoint import Message, default, encode
from pytest_ldos.robot.dds.node import Context, Node

_TYPE: Final = "std_msgs/msg/String"
_TOPIC: Final = "/cost_topic_0"
_STAMP_AT: Final = 8  # offset of the stamp: CDR's header and the length of the text precede it
_STAMP_DIGITS: Final = 16
_PATIENCE_S: Final = 1.0
_COMPLETE_POLL_S: Final = 0.002


class Pair:
    """A talker on the calling thread of `exchange`, and a listener on another thread."""

    def __init__(self, domain: int) -> None:
        self._context = Context(domain)
        self._publisher = Node(self._context, "cost_talker").create_publisher(_TYPE, _TOPIC)
        Node(self._context, "cost_listener").create_subscription(_TYPE, _TOPIC, self._receive)
        self._latencies_ns: list[int] = []
        self._thread = threading.Thread(target=self._context.executor.spin, name="listener")
        self._thread.start()

    def _receive(self, message: Message) -> None:
        now_ns = time.monotonic_ns()
        self._latencies_ns.append(now_ns - int(message.data[:_STAMP_DIGITS], 16))

    def is_matched(self) -> bool:
        return self._publisher.matched() > 0

    def exchange(self, size_bytes: int, ticks: int, rate_hz: float) -> Mapping[str, Any]:
        """Publishes at a fixed rate, and waits until all messages were received, or for a limited time."""
        latencies_ns: list[int] = []
        self._latencies_ns = latencies_ns
        encoded = encode(default(_TYPE, data="X" * size_bytes))
        head, tail = encoded[:_STAMP_AT], encoded[_STAMP_AT + _STAMP_DIGITS :]
        period_ns, due_ns = int(NS_PER_S / rate_hz), time.monotonic_ns()
        for _ in range(ticks):
            due_ns += period_ns
            time.sleep(max(0, due_ns - time.monotonic_ns()) / NS_PER_S)
            self._publisher.publish_encoded(b"%b%016x%b" % (head, time.monotonic_ns(), tail))
        comes_true(lambda: len(latencies_ns) >= ticks, limit_s=_PATIENCE_S, poll_s=_COMPLETE_POLL_S)
        return {"published": ticks, "latencies_ns": list(latencies_ns)}

    def stop(self) -> None:
        self._context.executor.stop()
        self._thread.join()


def time_calls(count: int) -> Mapping[str, Any]:
    return {"calls": count, "elapsed_ns": time_tracepoints(count)}


def answer(pair: Pair, question: str) -> Mapping[str, Any]:
    word, *numbers = question.split()
    if word == "tracepoints":
        return time_calls(int(numbers[0]))
    size_bytes, ticks, rate_hz = numbers
    return pair.exchange(int(size_bytes), int(ticks), float(rate_hz))


def main() -> None:
    settings = given_settings()
    pair = Pair(settings["domain"])
    try:
        answer_lines(partial(answer, pair), is_matched=pair.is_matched, match_s=settings["match_s"])
    finally:
        pair.stop()


if __name__ == "__main__":
    main()
