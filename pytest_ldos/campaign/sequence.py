"""Measures the starts of a calibration, one after another; completed starts are kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from pytest_ldos.campaign.evidence import Evidence, append_start, is_of_same_kind, is_of_same_version
from pytest_ldos.campaign.starts import starts_of
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.scenario.model import ScenarioSpec


@dataclass(frozen=True, kw_only=True)
class SequencePlan:
    """Plan of a sequence of starts.

    Attributes:
        spec: its number of trials is that of one start.
        starts: number of starts in each run.
        time_limit_s: no start begins that is expected to end later; ``None`` for no limit.
        keep_earlier: True if runs of earlier calibrations of the same version count, too.
    """

    spec: ScenarioSpec
    starts: int
    runs: int = 1
    pause_s: float = 0.0
    time_limit_s: float | None = None
    keep_earlier: bool = False


class SequenceObserver(Protocol):
    """Observer of starts being measured."""

    def start(self, number: int, of: int) -> None:
        """A start (from 1) begins."""

    def note(self, text: str) -> None:
        """A remark for the user."""


@dataclass
class _Clock:
    """Tracks the duration of starts, to predict whether one more fits."""

    limit_s: float | None
    now: Callable[[], float]
    began: list[float] = field(default_factory=list)

    def begin_start(self) -> bool:
        """Records that a start begins; returns True if it is expected to end in time."""
        self.began.append(self.now())
        if self.limit_s is None or len(self.began) == 1:
            return True
        usual_s = (self.began[-1] - self.began[0]) / (len(self.began) - 1)
        return self.began[-1] - self.began[0] + usual_s <= self.limit_s


@dataclass(frozen=True)
class Sequencer:
    """Measures starts according to a plan.

    Attributes:
        measure: returns the trials of one start, by its block number.
        now, pause: time of a clock and sleep, in seconds.
    """

    plan: SequencePlan
    evidence: Evidence
    measure: Callable[[int], TrialSet]
    observer: SequenceObserver
    commit: str = ""
    now: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep

    def runs(self) -> list[TrialSet]:
        """Measures and returns all runs; the last one may be shorter than planned.

        If it ends early, the complete starts are on disk, where the next call finds them.
        """
        earlier = self.evidence.runs() if self.plan.keep_earlier else []
        measured: list[TrialSet] = []
        clock = _Clock(self.plan.time_limit_s, self.now)
        resumed = self._resumable()
        total = self.plan.runs * self.plan.starts
        for number in range(self.plan.runs):
            if number:
                self.pause(self.plan.pause_s)
            run, is_complete = self._run(resumed if number == 0 else None, clock, (number * self.plan.starts, total))
            if run is not None:
                measured.append(run)
            if not is_complete:
                self.observer.note(f"the time limit ended it after {_count(measured)} of {total} starts")
                break
            if run is not None:
                self.evidence.finish(run, keep_earlier=self.plan.keep_earlier or number > 0)
        return [*self._joinable(earlier, measured), *measured]

    def _joinable(self, earlier: list[TrialSet], measured: list[TrialSet]) -> list[TrialSet]:
        """Earlier runs of the same version; differences between versions are not noise."""
        if not measured:
            return earlier
        joinable = [run for run in earlier if is_of_same_version(run, measured[-1])]
        if left_out := len(earlier) - len(joinable):
            runs = "1 earlier run belongs" if left_out == 1 else f"{left_out} earlier runs belong"
            self.observer.note(f"{runs} to another commit, setting or environment: left out")
        return joinable

    def _run(self, run: TrialSet | None, clock: _Clock, progress: tuple[int, int]) -> tuple[TrialSet | None, bool]:
        done = _count([run]) if run else 0
        for block in range(done, self.plan.starts):
            if not clock.begin_start():
                return run, False
            self.observer.start(progress[0] + block + 1, progress[1])
            start = self.measure(block)
            if run is not None and not is_of_same_kind(run, start):
                self.observer.note("what was measured before belongs to another version: it is left out")
                run = None
            run = append_start(run, start)
            self.evidence.keep(run)
        return run, True

    def _resumable(self) -> TrialSet | None:
        found = self.evidence.unfinished()
        if found is None or found.spec != self.plan.spec or found.commit != self.commit:
            return None
        self.observer.note(f"continues what was interrupted: {_count([found])} starts of {found.started_at}")
        return found


def _count(runs: list[TrialSet]) -> int:
    return len(starts_of(runs))
