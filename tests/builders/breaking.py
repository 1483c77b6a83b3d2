"""Made-up stacks that break at some level of a load, and searches on them that need no time."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pytest_ldos.campaign.bisection import LevelScale, SearchPlan
from pytest_ldos.campaign.breaking_result import BreakingPlan, BreakingResult, parse_criterion
from pytest_ldos.campaign.find_breaking import BreakingSearch, BreakingStore
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.trial.record import MotionTrial, TrialSet
from pytest_ldos.robot.stack.goals import ErrorCode, OutcomeClass
from pytest_ldos.scenario.model import FaultSpec, ScenarioSpec, StackSpec
from tests.builders.trials import TYPICAL, trial, trial_set

ADDRESS = "stack.faults.planning_delay_ms"
VERSION = {"commit": "0123456789ab", "changes": ""}
STUCK = "the arm could not return home (timed_out: the controller took longer than 2.8 s)"
SCALE = LevelScale(low=1, high=1000, precision=0.3)


def at(level: float) -> ScenarioSpec:
    """A scenario whose level stands where any field may."""
    return ScenarioSpec(name="baseline", trials=4, stack=StackSpec(faults=FaultSpec(planning_delay_ms=level)))


def level_of(spec: ScenarioSpec) -> float:
    return spec.stack.faults.planning_delay_ms


@dataclass
class MadeUpStack:
    """Trials of one start after another.

    Attributes:
        breaks_at: from there on, trials fail.
        slow_from: from there on, planning takes ten times as long, and joint states wait five times as long.
        stuck_from: from there on, the arm does not come home after the warm-up.
        reaches: the most of the load that is applied.
        ends: exceptions by the number of the start, from 1.
    """

    breaks_at: float = float("inf")
    slow_from: float = float("inf")
    reaches: float = float("inf")
    ends: dict[int, BaseException] = field(default_factory=dict)
    stuck_from: float = float("inf")
    fails: Callable[[float, int], bool] | None = None
    message: str = "the controller gave up"
    levels: list[float] = field(default_factory=list)

    def measure(self, spec: ScenarioSpec) -> TrialSet:
        level = level_of(spec)
        self.levels.append(level)
        if len(self.levels) in self.ends:
            raise self.ends[len(self.levels)]
        is_stuck = level >= self.stuck_from
        trials = [] if is_stuck else [self._trial(level, index) for index in range(spec.trials)]
        reached = min(level, self.reaches)
        proof = {
            "kind": "stack",
            "rate_hz": reached,
            "requested_hz": level,
            "summary": f"{reached:g} of {level:g}",
            "shortfall": "" if reached == level else f"the load reached {reached:g} of {level:g}",
        }
        return trial_set(trials, spec=spec, loads=(proof,), incomplete=STUCK if is_stuck else "")

    def _trial(self, level: float, index: int) -> MotionTrial:
        rng = random.Random(f"{len(self.levels)}-{index}")
        slow = level >= self.slow_from
        values: dict[str, Any] = {name: typical * rng.lognormvariate(0, 0.05) for name, typical in TYPICAL.items()}
        values |= {"T1": values["T1"] * (10 if slow else 1), "T3p99": 0.3 * rng.lognormvariate(0, 0.05), "T5p99": 0.2}
        wait = round(60_000 * rng.lognormvariate(0, 0.05) * (5 if slow else 1))
        feedback = {
            "latency": 700_000,
            "transport: /joint_states → /rsp": round(220_000 * rng.lognormvariate(0, 0.05)),
            "executor wait: /rsp": wait,
        }
        plain = trial(index, values, segments_ns={"state feedback": feedback})
        fails = level >= self.breaks_at if self.fails is None else self.fails(level, index)
        if not fails:
            return plain
        return dataclasses.replace(
            plain, outcome=OutcomeClass.CONTROL_FAILED, error_code=ErrorCode.CONTROL_FAILED, message=self.message
        )


@dataclass
class Watching:
    """See `CampaignObserver`."""

    begun: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def doing(self, what: str) -> None:
        self.begun.append(what)

    def expect(self, steps: int) -> None: ...

    def note(self, text: str) -> None:
        self.notes.append(text)


def plan(until: str = "success<0.5", *, scale: LevelScale = SCALE, time_limit_s: float | None = None, **changes):
    criterion = parse_criterion(until, dict(METRICS))
    search = SearchPlan(scale=scale, boundary=criterion.boundary, **changes)
    return BreakingPlan(address=ADDRESS, search=search, criterion=criterion, time_limit_s=time_limit_s)


def search(
    stack: MadeUpStack,
    folder: Path,
    chosen: BreakingPlan | None = None,
    watching: Watching | None = None,
    **changes: Any,
) -> BreakingResult:
    """Runs a search on a made-up stack."""
    changes.setdefault("version", VERSION)
    return BreakingSearch(
        plan=chosen or plan(),
        **{"at": at, **changes},
        measure=stack.measure,
        store=BreakingStore(folder),
        observer=watching or Watching(),
    ).run()


@cache
def breaking_result() -> BreakingResult:
    """Result of a search: a threshold, and a level whose load was not reached."""
    with TemporaryDirectory() as folder:
        return search(MadeUpStack(breaks_at=100, reaches=500), Path(folder))
