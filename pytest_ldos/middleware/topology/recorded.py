"""What one start of a topology left: raw, before anything is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_ldos.middleware.topology.samples import Samples


@dataclass(frozen=True, kw_only=True)
class ResourceSample:
    """What a process used at a moment; sizes in KiB.

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
    """One start of all processes. All moments are ns of CLOCK_MONOTONIC.

    Attributes:
        launched_ns: the first process was started.
        start_ns, end_ns: messages were to be sent between them.
        ended_ns: until when all processes sent: `end_ns`, or the end of the first that ended too early.
        matched_ns: by process, when all its ends had met their peers.
        sent: by id; of those who said it.
        resources: by process.
        failure: why it did not end as it should; empty where it did.
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
