"""Seconds of a run by phase, which show the cost of stack starts relative to trials."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

_Stack = TypeVar("_Stack")


class RunPhase(StrEnum):
    """Phase of a run.

    ``STARTING`` lasts until goals can be sent: tracer, processes, discovery, readiness. ``TRIALS`` contains writing the
    record after each. ``READING`` is everything between the last trial and its numbers: flushing the tracer, decoding,
    measuring.
    """

    STARTING = "starting"
    WARM_UP = "warm-up"
    LOADS = "applying loads"
    TRIALS = "trials"
    HOMING = "homing"
    READING = "reading the trace"
    STOPPING = "stopping"


@dataclass(frozen=True)
class Spent:
    """Time spent in a phase.

    Attributes:
        times: number of times it began.
    """

    times: int = 0
    seconds: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.times + other.times, self.seconds + other.seconds)


Durations = Mapping[RunPhase, Spent]
"""Time spent in each phase; phases that never began are left out."""


@dataclass
class PhaseClock:
    """Sums the time of each phase; stops between phases.

    Attributes:
        now_s: a clock that is never set.
    """

    now_s: Callable[[], float] = time.monotonic
    durations: dict[RunPhase, Spent] = field(default_factory=dict)
    _phase: RunPhase | None = None
    _began_s: float = 0.0

    def enter(self, phase: RunPhase | None) -> None:
        """Ends the current phase and begins another one, or none."""
        now_s = self.now_s()
        if self._phase is not None:
            self.durations[self._phase] += Spent(0, now_s - self._began_s)
        self._phase, self._began_s = phase, now_s
        if phase is not None:
            self.durations[phase] = self.durations.get(phase, Spent()) + Spent(1)


@contextmanager
def clocked(stack: AbstractContextManager[_Stack], clock: PhaseClock) -> Iterator[_Stack]:
    """Wraps a stack's context manager to time its start and end."""
    clock.enter(RunPhase.STARTING)
    try:
        with stack as running:
            clock.enter(None)
            try:
                yield running
            finally:
                clock.enter(RunPhase.STOPPING)
    finally:
        clock.enter(None)


def describe_durations(durations: Durations) -> str:
    """Seconds of each phase, in the order of a run: ``starting 4.5 s, warm-up 1.7 s, …``."""
    return ", ".join(f"{phase} {durations[phase].seconds:.1f} s" for phase in RunPhase if phase in durations)
