"""Measures the starts of a calibration, one after another, and stores their trials.

``.ldos/calibration/<stack>/<host class>/<scenario>/`` holds ``run-001.json`` … and ``unfinished.json``.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.writable import write_atomically
from pytest_ldos.campaign.noise import starts_of, template_of
from pytest_ldos.host.interference import add_up
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.measure.trial.artifacts import read_trials
from pytest_ldos.measure.trial.codec import encode_trials
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.scenario.model import ScenarioSpec

FOLDER: Final = "calibration"
_UNFINISHED: Final = "unfinished.json"
_RUN: Final = re.compile(r"run-[0-9]{1,9}\.json")


@dataclass(frozen=True)
class Evidence:
    """The runs of one scenario on one host class."""

    folder: Path

    @classmethod
    def of(cls, output: Path, key: BaselineKey) -> Evidence:
        return cls(key.folder(output / FOLDER))

    def runs(self) -> list[TrialSet]:
        """The finished runs, in chronological order.

        Raises:
            RecordUnreadable: a file is damaged; names it.
        """
        return [read_trials(file) for file in self._files()]

    def unfinished(self) -> TrialSet | None:
        """The starts of an interrupted run; ``None`` if there are none or they are damaged."""
        try:
            return read_trials(self.folder / _UNFINISHED)
        except RecordUnreadable:
            return None

    def keep(self, run: TrialSet) -> None:
        """Saves the starts of a run that is not finished."""
        write_atomically(self.folder / _UNFINISHED, encode_trials(run))

    def finish(self, run: TrialSet, *, keep_earlier: bool) -> None:
        """Saves a complete run; only then deletes earlier ones, unless they are kept."""
        earlier = self._files()
        number = 1 + max((_number_of(file) for file in earlier), default=0)
        write_atomically(self.folder / f"run-{number:03d}.json", encode_trials(run))
        for file in (self.folder / _UNFINISHED, *(() if keep_earlier else earlier)):
            file.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        """Files written by this class; copies with other names are ignored."""
        ours = (file for file in self.folder.glob("run-*.json") if _RUN.fullmatch(file.name))
        return sorted(ours, key=_number_of)


def _number_of(file: Path) -> int:
    return int(file.stem.removeprefix("run-"))


def append_start(run: TrialSet | None, start: TrialSet) -> TrialSet:
    """Appends a start to a run."""
    if run is None:
        return start
    losses = run.discarded_events + start.discarded_events
    return dataclasses.replace(
        run,
        trials=(*run.trials, *start.trials),
        loads=(*run.loads, *start.loads),
        discarded_events=losses,
        incomplete=start.incomplete or run.incomplete,
        surroundings=add_up(each.surroundings for each in (run, start) if each.surroundings is not None),
        repeated=(*run.repeated, *start.repeated),
        metrics=template_of([run, start]).metrics,
    )


def is_of_same_kind(run: TrialSet, other: TrialSet) -> bool:
    """True if starts of both can be pooled: the same version, measured in the same way."""
    return (
        BaselineKey.of(run) == BaselineKey.of(other)
        and run.spec == other.spec
        and run.commit == other.commit
        and run.fingerprint.versions == other.fingerprint.versions
    )


def is_of_same_version(run: TrialSet, other: TrialSet) -> bool:
    """True if both are of the same version: like `is_of_same_kind`, for any number of trials per start."""
    alike = dataclasses.replace(run.spec, trials=other.spec.trials, max_trials=other.spec.max_trials)
    return is_of_same_kind(dataclasses.replace(run, spec=alike), other)


@dataclass(frozen=True, kw_only=True)
class SequencePlan:
    """Plan of a sequence of starts.

    Attributes:
        spec: scenario; its number of trials applies to one start.
        starts: number of starts in each run.
        time_limit_s: starts that are expected to end later are not begun; ``None`` for no limit.
        keep_earlier: True to include runs of earlier calibrations of the same version.
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
    """Tracks the duration of starts, to predict if another one fits in the time limit."""

    limit_s: float | None
    now: Callable[[], float]
    began: list[float] = field(default_factory=list)

    def begin_start(self) -> bool:
        """Records the begin of a start; returns True if it is expected to end in time."""
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

        After an early end, the next call resumes from the complete starts on disk.
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
        """Earlier runs of the same version, because differences between versions are not noise."""
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
