"""Our rule: the gate itself, on trial sets that are made of the numbers, looked at as often as it may be.

This is the only file of the scorecard that knows the gate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.scorecard.sample import Batch, Side
from pytest_ldos.base.series import Missing
from pytest_ldos.base.text import NS_PER_MS
from pytest_ldos.host.fingerprint import Fingerprint
from pytest_ldos.judge.baseline.key import Calibration, MetricNoise
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import GateResult, decide
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.metrics.model import (
    CONTROL_PROBE,
    CPU_WORK,
    MARKERS,
    PLANNED_DURATION,
    SIMULATOR_PROBE,
    Measurement,
    Source,
)
from pytest_ldos.measure.trial.record import Look, MotionTrial, TrialSet
from pytest_ldos.robot.stack.goals import ErrorCode, OutcomeClass
from pytest_ldos.scenario.model import ScenarioSpec

_SOURCES: Final[Mapping[str, Source]] = {"T3": CONTROL_PROBE, "T3p99": CONTROL_PROBE, "T5": SIMULATOR_PROBE}
_NEVER_MEASURED: Final = Missing("the trial failed before")
_UNKNOWN: Final = "of nobody"
"""A kind of stack that the record of unchanged runs does not have: these numbers are older, or made up."""

_HOST: Final = Fingerprint(
    cpu_model="", cores=1, smt="", governor="", turbo="", rmw="", kernel="", hostname="", versions={}
)


@dataclass(frozen=True)
class Judged:
    """Result of one scenario in one run.

    Attributes:
        verdict: of the scenario.
        regressed: metrics that were called so.
        mde: minimum detectable effects, by metric, at the last look.
        unjudged: metrics that the host could not judge.
        head_trials, base_trials: that were made until it was clear, or no more were allowed.
    """

    verdict: Verdict
    regressed: frozenset[str]
    head_trials: int
    base_trials: int
    mde: Mapping[str, float]
    unjudged: frozenset[str]

    @property
    def red(self) -> bool:
        return self.verdict is Verdict.REGRESSED


@dataclass(frozen=True)
class Ours:
    """The gate.

    Attributes:
        calibrated: true if it gets the host's noise from a calibration, if there is one.
        required: metrics without which there is no verdict; the gate's own choice without it.
    """

    calibrated: bool
    name: str
    title: str
    required: tuple[str, ...] | None = None
    source: str = "pytest_ldos.judge.gate.decide, called in process"

    def judge(self, batch: Batch, run: int, *, scenarios: int) -> Judged:
        """One run of one scenario, of a family of so many."""
        policy = self._policy(batch, run, scenarios)
        base, head = _trials(batch.base, run), _trials(batch.head, run)
        for number, look in enumerate(batch.looks, start=1):
            seen = batch.looks[:number]
            sets = [_trial_set(batch, trials[:count], seen) for trials, count in ((head, look.head), (base, look.base))]
            result = decide(sets[0], sets[1], policy)
            if look is batch.looks[-1] or not result.more_trials_because:
                regressed, unjudged = (_with(result, verdict) for verdict in (Verdict.REGRESSED, Verdict.NOT_JUDGED))
                mde = {each.metric: each.mde for each in result.comparisons}
                return Judged(result.verdict, regressed, look.head, look.base, mde, unjudged)
        raise ValueError("there is nothing to look at")

    def _policy(self, batch: Batch, run: int, scenarios: int) -> Policy:
        noise = batch.noise_of(run) if self.calibrated else {}
        calibrations = {batch.scenario: _calibration(batch.scenario, noise)} if noise else {}
        return Policy(scenarios=scenarios, calibrations=calibrations, required=self.required)


def _with(result: GateResult, verdict: Verdict) -> frozenset[str]:
    return frozenset(each.metric for each in result.comparisons if each.verdict is verdict)


def _calibration(scenario: str, noise: Mapping[str, MetricNoise]) -> Calibration:
    return Calibration(
        scenario=scenario,
        stack_kind=_UNKNOWN,
        fingerprint=_HOST,
        made_at="2026-01-01T00:00:00+00:00",
        commit="",
        starts=0,
        trials=0,
        metrics=noise,
    )


def _trial_set(batch: Batch, trials: list[MotionTrial], looks: tuple[Look, ...]) -> TrialSet:
    return TrialSet(
        spec=ScenarioSpec(name=batch.scenario, trials=len(trials), success_rate=batch.success_rate),
        started_at="2026-01-01T00:00:00+00:00",
        commit="",
        stack_kind=_UNKNOWN,
        stack="embedded",
        recorder="",
        fingerprint=_HOST,
        trials=tuple(trials),
        looks=looks,
        last_look=batch.looks[-1],
        session="in turns" if batch.interleaved else "",
    )


def _trials(side: Side, run: int) -> list[MotionTrial]:
    plan, work = (side.covariates.get(name) for name in (PLANNED_DURATION, CPU_WORK))
    columns = {name: values[run].tolist() for name, values in side.values.items()}
    failed, blocks = side.failed[run].tolist(), side.blocks.tolist()
    return [
        MotionTrial(
            index=index,
            goal="reach",
            goal_id="",
            seed=None,
            block=blocks[index],
            outcome=OutcomeClass.PLANNING_FAILED if failed[index] else OutcomeClass.SUCCESS,
            error_code=ErrorCode.PLANNING_FAILED if failed[index] else ErrorCode.SUCCESS,
            message="",
            stamps_ns={},
            plan_duration_ns=_ns(None if plan is None else plan[run, index]),
            plan_points=0,
            position_error_m=None,
            rotation_error_rad=None,
            measurements={
                name: _measurement(name, column[index], failed=failed[index]) for name, column in columns.items()
            },
            cpu_work_ns=_ns(None if work is None else work[run, index]),
        )
        for index in range(side.trials)
    ]


def _measurement(name: str, value: float, *, failed: bool) -> Measurement:
    if failed or not np.isfinite(value):
        return Measurement(_NEVER_MEASURED)
    return Measurement(value, source=_SOURCES.get(name, MARKERS))


def _ns(value_ms: float | None) -> int | None:
    return None if value_ms is None or not np.isfinite(value_ms) else round(value_ms * NS_PER_MS)
