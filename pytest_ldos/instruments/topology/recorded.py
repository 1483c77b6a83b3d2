"""The raw results of one start of a topology."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_ldos.robot.topology.samples import Samples


@dataclass(frozen=True, kw_only=True)
class ResourceSample:
    """Resource usage of a process at one moment; sizes in KiB.

    Attributes:
        cpu_ns: CPU time since its start.
    """

    mono_ns: int
    cpu_ns: int
    arena_kb: int
    in_use_kb: int
    mmap_kb: int
    rss_kb: int
    vsz_kb: int


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """One start of all processes. All times are ns of CLOCK_MONOTONIC.

    Attributes:
        launched_ns: start of the first process.
        start_ns, end_ns: interval in which messages were to be sent.
        ended_ns: end of the time in which all processes sent: `end_ns`, or the end of the first that ended too early.
        matched_ns: time by process at which all its endpoints had found their peers.
        sent: numbers of messages sent by id, for those that reported them.
        resources: samples by process.
        failure: why it did not end as it should; empty if it did.
    """

    launched_ns: int
    start_ns: int
    end_ns: int
    ended_ns: int
    matched_ns: Mapping[str, int]
    sent: Mapping[int, int]
    samples: Samples
    resources: Mapping[str, tuple[ResourceSample, ...]]
    failure: str = ""

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns
