"""A flood of messages beside the stack: several publishers, and a receiver that counts."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from pytest_ldos.errors import LoadFailed
from pytest_ldos.host.processes import Child, ProcessGroup
from pytest_ldos.load.protocol import LoadProof, LoadSite
from pytest_ldos.scenario.loads import DdsFloodSpec
from pytest_ldos.units import NS_PER_S

REACHED_FRACTION: Final = 0.99
"""Of the requested rate; a flood below it is not the load that was asked for."""

LONGEST_S: Final = 1800.0
"""A flood ends by itself after this time, whatever happens to us."""

_READY_TIMEOUT_S: Final = 15.0
_ROOM: Final = "pytest_ldos.load"


@dataclass(frozen=True, kw_only=True)
class FloodProof(LoadProof):
    """See `LoadProof`.

    Attributes:
        requested_hz: messages a second of all publishers together.
        rate_hz: messages a second that a receiver counted.
    """

    publishers: int
    size_bytes: int
    requested_hz: float
    rate_hz: float

    @property
    def applied(self) -> float:
        return self.rate_hz

    def describe(self) -> str:
        return (
            f"DDS flood: {self.rate_hz:.0f} of {self.requested_hz:.0f} msg/s received "
            f"({self.publishers} publishers, {self.size_bytes} bytes)"
        )


class RunningFlood:
    """See `RunningLoad`."""

    def __init__(self, spec: DdsFloodSpec, counter: Child, group: ProcessGroup) -> None:
        self.spec = spec
        self._counter = counter
        self._group = group
        self._changed = threading.Condition()
        self._first: tuple[int, int] | None = None
        self._last: tuple[int, int] = (0, 0)
        self._by_topic: dict[str, int] = {}
        self._died = ""
        threading.Thread(target=self._read_counts, name="flood counts", daemon=True).start()

    @property
    def proof(self) -> FloodProof:
        with self._changed:
            first = self._first or self._last
            seconds = (self._last[0] - first[0]) / NS_PER_S
            received = self._last[1] - first[1]
        rate_hz = received / seconds if seconds > 0 else 0.0
        return FloodProof(
            kind="dds_flood",
            seconds=seconds,
            shortfall=self._died or self._shortfall(rate_hz),
            publishers=self.spec.publishers,
            size_bytes=self.spec.size_bytes,
            requested_hz=self.spec.total_hz,
            rate_hz=rate_hz,
        )

    def _shortfall(self, rate_hz: float) -> str:
        if rate_hz >= REACHED_FRACTION * self.spec.total_hz:
            return ""
        return f"the flood reached {rate_hz:.0f} of {self.spec.total_hz:.0f} msg/s"

    def _read_counts(self) -> None:
        assert self._counter.process.stdout is not None
        for line in self._counter.process.stdout:
            report = json.loads(line)
            with self._changed:
                self._by_topic = report["received"]
                self._last = (report["mono_ns"], sum(self._by_topic.values()))
                self._changed.notify_all()
            self.note_deaths()

    def note_deaths(self) -> None:
        """Remembers a process that ended while the flood should run."""
        ended = self._group.ended()
        if ended and not self._died:
            self._died = ended[0].describe_end()

    def await_arrival(self) -> None:
        """Returns when every topic arrives; measuring begins then."""
        deadline = time.monotonic() + _READY_TIMEOUT_S
        with self._changed:
            while not (self._by_topic and all(self._by_topic.values())):
                left_s = deadline - time.monotonic()
                if left_s <= 0 or not self._changed.wait(left_s):
                    raise LoadFailed(
                        f"the flood did not arrive within {_READY_TIMEOUT_S:.0f} s at its receiver",
                        remedy="look at the logs of the flood's processes",
                    )
            self._first = self._last


@contextmanager
def run_flood(spec: DdsFloodSpec, site: LoadSite) -> Iterator[RunningFlood]:
    """Floods for as long as the context lasts.

    Raises:
        LoadFailed: no message of some publisher arrived.
    """
    recorder = site.recorder
    group = ProcessGroup(log_directory=site.log_directory, prefix=recorder.prefix, environment=recorder.environment)
    topics = [f"/flood_topic_{index + 1}" for index in range(spec.publishers)]
    try:
        counter = group.start("flood_counter", _command("flood_counter", domain=site.domain, topics=topics), talk=True)
        for index, topic in enumerate(topics, start=1):
            command = _command(
                "flood_publisher",
                domain=site.domain,
                index=index,
                topic=topic,
                rate_hz=spec.rate_hz,
                size_bytes=spec.size_bytes,
                seconds=LONGEST_S,
            )
            group.start(f"flood_publisher_{index}", command)
        flood = RunningFlood(spec, counter, group)
        flood.await_arrival()
        yield flood
        flood.note_deaths()
    finally:
        group.stop()


def _command(module: str, **parameters: object) -> list[str]:
    return [sys.executable, "-m", f"{_ROOM}.{module}", json.dumps(parameters)]
