"""Checks for trial sets that are well-formed but cannot come from a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Final

from pytest_ldos.base.plain import read_plain
from pytest_ldos.host.interference import Interference
from pytest_ldos.measure.trial.record import Look, MotionTrial, TrialSet

_TOLD_OF_LOADS: Final = ("shortfall", "summary")


def require_undamaged(trials: TrialSet) -> None:
    """Checks a trial set read from a file.

    Raises:
        ValueError: the message states the damage.
    """
    _require_described(trials)
    _require_ascending(trials.looks)
    _require_counts(trials.discarded_events, "discarded_events")
    for load in trials.loads:
        for name in _TOLD_OF_LOADS:
            read_plain(str, load.get(name), f"{name} of a load")
    for trial in (*trials.trials, *trials.repeated):
        _require_counts(trial.index, "index of a trial")
        _require_counts(trial.block, "block of a trial")
    if trials.surroundings is not None:
        _require_possible_interference(trials.surroundings)
    for motion in (*trials.motions, *trials.repeated):
        _require_possible(motion)


def _require_described(trials: TrialSet) -> None:
    described = {metric.name for metric in trials.metrics}
    if len(described) != len(trials.metrics):
        raise ValueError("it describes a metric twice")
    undescribed = {name for trial in (*trials.trials, *trials.repeated) for name in trial.measurements} - described
    if undescribed:
        raise ValueError(f"it does not say what {', '.join(sorted(undescribed))} is")


def _require_ascending(looks: Sequence[Look]) -> None:
    for look in looks:
        _require_counts(look.head, "a look")
        _require_counts(look.base, "a look")
    for earlier, later in pairwise(look for look in looks if look.information > 0):
        if later.information <= earlier.information:
            raise ValueError(f"its looks do not ascend: {later.head} and {later.base} trials came later")


def _require_possible(trial: MotionTrial) -> None:
    for name in ("plan_points", "plan_duration_ns", "cpu_work_ns"):
        _require_counts(getattr(trial, name), f"{name} of a trial")
    if trial.interference is not None:
        _require_possible_interference(trial.interference)
    for path, kept in trial.deadlines.items():
        if not 0 <= kept.in_time <= kept.passages:
            raise ValueError(f"{kept.in_time} of {kept.passages} passages of path {path!r} kept their deadline")


def _require_possible_interference(found: Interference) -> None:
    for name, value in asdict(found).items():
        for each in value.values() if isinstance(value, dict) else [value]:
            if each is not None and each < 0:
                raise ValueError(f"{name} of an interference is {each}")


def _require_counts(value: int | None, what: str) -> None:
    if value is not None and value < 0:
        raise ValueError(f"{what} is {value}")
