"""MotionTrial sets with given numbers, for what works on results alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from pytest_ldos.base.series import Missing, Value
from pytest_ldos.host.fingerprint import Fingerprint
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.model import CONTROL_PROBE, MARKERS, SIMULATOR_PROBE, Measurement, Source
from pytest_ldos.measure.trial.record import MotionTrial, TrialSet
from pytest_ldos.robot.stack.goals import ErrorCode, OutcomeClass
from pytest_ldos.scenario.model import ScenarioSpec

FINGERPRINT = Fingerprint(
    cpu_model="Test CPU",
    cores=4,
    smt="off",
    governor="performance",
    turbo="off",
    rmw="cyclonedds",
    kernel="6.1",
    hostname="lab",
    versions={"mujoco": "3.2"},
)

TYPICAL = {"T1": 14.0, "T2": 1950.0, "T2x": 30.0, "T3": 0.08, "T4": 1970.0, "T5": 0.07}


OWN_SOURCES = {"T3": CONTROL_PROBE, "T5": SIMULATOR_PROBE}


def measured(name: str, value: Value) -> Measurement:
    """By a probe or by markers, as the metric is defined."""
    return Measurement(value, source=OWN_SOURCES.get(name, MARKERS) if isinstance(value, float | int) else None)


def taken_from(trials: TrialSet, name: str, source: Source, *, only: int | None = None) -> TrialSet:
    """The trials with the values of a metric from another source, in all of them or in the first few."""
    changed = [
        dataclasses.replace(each, measurements={**each.measurements, name: moved})
        if (moved := dataclasses.replace(each.measurements[name], source=source)).number is not None
        and (only is None or each.index < only)
        else each
        for each in trials.trials
    ]
    return dataclasses.replace(trials, trials=tuple(changed))


def trial(index: int, values: Mapping[str, Value], **changes) -> MotionTrial:
    plain = MotionTrial(
        index=index,
        goal="reach",
        goal_id=f"{index:032x}",
        seed=index + 1,
        block=0,
        outcome=OutcomeClass.SUCCESS,
        error_code=ErrorCode.SUCCESS,
        message="",
        stamps_ns={},
        plan_duration_ns=1_920_000_000,
        plan_points=20,
        position_error_m=0.001,
        rotation_error_rad=0.001,
        measurements={name: measured(name, value) for name, value in values.items()},
    )
    return dataclasses.replace(plain, **changes)


def failed_trial(index: int, **changes) -> MotionTrial:
    """A goal that could not be planned, quickly."""
    values: dict[str, Value] = dict.fromkeys(METRICS, Missing("the trial never entered phase 'executing'"))
    return trial(
        index,
        {**values, "T4": 3.0, "T5": 0.07},
        outcome=OutcomeClass.PLANNING_FAILED,
        error_code=ErrorCode.NO_IK_SOLUTION,
        message="no joints bring the tip to the goal",
        plan_duration_ns=None,
        **changes,
    )


def trial_set(trials: Sequence[MotionTrial], *, name: str = "baseline", **changes) -> TrialSet:
    plain = TrialSet(
        spec=ScenarioSpec(name=name, trials=max(1, len(trials))),
        started_at="2026-01-01T00:00:00+00:00",
        commit="0123456789ab",
        stack_kind="embedded",
        stack="embedded (test)",
        recorder="LTTng 2.13",
        fingerprint=FINGERPRINT,
        trials=tuple(trials),
        trace="trace",
    )
    return dataclasses.replace(plain, **changes)


def noisy_set(
    seed: int,
    *,
    n: int = 10,
    factors: Mapping[str, float] | None = None,
    cv: float | Mapping[str, float] = 0.05,
    failures: int = 0,
    **changes,
) -> TrialSet:
    """Trials with log-normal noise around typical values, times a factor per metric; two of each start."""
    rng = np.random.default_rng(seed)
    factors = factors or {}

    def spread(name: str) -> float:
        return cv if isinstance(cv, float) else cv.get(name, 0.05)

    trials = []
    for index in range(n):
        values = {
            name: float(
                typical * factors.get(name, 1.0) * rng.lognormal(0, spread(name) if name not in {"T2", "T4"} else 0.003)
            )
            for name, typical in TYPICAL.items()
        }
        trials.append(
            failed_trial(index, block=index // 2) if index < failures else trial(index, values, block=index // 2)
        )
    return trial_set(trials, **changes)


def with_metric(trials: TrialSet, name: str, *, typical: float, cv: float, seed: int = 0) -> TrialSet:
    """The trials, with another metric in those that succeeded."""
    rng = np.random.default_rng(seed)
    own = tuple(
        dataclasses.replace(
            each, measurements={**each.measurements, name: measured(name, typical * float(rng.lognormal(0, cv)))}
        )
        if each.succeeded
        else each
        for each in trials.trials
    )
    return dataclasses.replace(trials, trials=own)


def in_starts(trials: TrialSet, per_start: int) -> TrialSet:
    """The trials, so many of each stack start."""
    own = tuple(dataclasses.replace(each, block=each.index // per_start) for each in trials.trials)
    return dataclasses.replace(trials, trials=own)


def times_three(trials: TrialSet, name: str, *, every: int = 1, until: int | None = None) -> TrialSet:
    """The trials, of which each ``every``-th, before number ``until``, has three times its value."""
    slow = {each.index for each in trials.trials[:until] if each.index % every == 0}
    changed = tuple(
        dataclasses.replace(
            each, measurements={**each.measurements, name: measured(name, 3 * (each.measurements[name].number or 0.0))}
        )
        if each.index in slow
        else each
        for each in trials.trials
    )
    return dataclasses.replace(trials, trials=changed)
