"""The results of one round."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.instruments.latency.case import Case
from pytest_ldos.instruments.latency.timings import Percentiles, Times


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """A round of one case.

    Attributes:
        round_trip: ``None`` without answers.
        there, back: one-way times, on a common clock; ``None`` if the program does not report them.
        sent, lost: numbers of messages; a message without an answer in time is lost.
        late: number of answers after the time limit.
        per_second: round trips per second.
        times_ns: times of all round trips, if known individually.
        failure: reason why there are no numbers; empty if there are.
    """

    case: Case
    block: int
    round_trip: Percentiles | None = None
    there: Percentiles | None = None
    back: Percentiles | None = None
    sent: int = 0
    lost: int = 0
    late: int = 0
    per_second: float = 0.0
    times_ns: Times | None = None
    failure: str = ""

    def without_times(self) -> Exchange:
        """Returns a copy without the times, to save memory."""
        return replace(self, times_ns=None)


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Counts of the ping side."""

    sent: int
    lost: int
    late: int
    elapsed_ns: int


def to_exchange(case: Case, block: int, counts: Counts, samples: Path) -> Exchange:
    """Builds an exchange from a report and its file of times (all round trips, then all one-way times of pings)."""
    times = np.fromfile(samples, dtype=np.int64)
    round_trips, there = times[: len(times) // 2], times[len(times) // 2 :]
    if not len(round_trips):
        failure = f"none of {counts.sent} messages was answered in time"
        return Exchange(case=case, block=block, sent=counts.sent, lost=counts.lost, late=counts.late, failure=failure)
    return Exchange(
        case=case,
        block=block,
        round_trip=Percentiles.of(round_trips),
        there=Percentiles.of(there),
        back=Percentiles.of(round_trips - there),
        sent=counts.sent,
        lost=counts.lost,
        late=counts.late,
        per_second=len(round_trips) * NS_PER_S / counts.elapsed_ns,
        times_ns=round_trips,
    )
