"""Success rates: how trials failed, and whether failures became more frequent."""

from __future__ import annotations

from pytest_ldos.base.stats.failure_rise import Counts, failures_rose
from pytest_ldos.base.stats.success import failure_rise_p
from pytest_ldos.judge.gate.expectations import EXPECTATION_SHARE
from pytest_ldos.judge.gate.levels import fractions_of, looks_of
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.reasons import FailuresRose, TrialsFailed
from pytest_ldos.measure.trial.record import TrialSet


def find_failures(head: TrialSet) -> list[TrialsFailed]:
    """Failed trials, grouped by how they failed."""
    several = len({trial.goal for trial in head.trials}) > 1
    found: dict[tuple[str, int | None, str, str], list[int]] = {}
    for trial in head.trials:
        if not trial.succeeded:
            kind = trial.outcome.value, trial.moveit_code, trial.goal if several else "", trial.message
            found.setdefault(kind, []).append(trial.index + 1)
    return [TrialsFailed(tuple(numbers), *kind) for kind, numbers in found.items()]


def failures_became_more(head: TrialSet, base: TrialSet, policy: Policy) -> bool:
    """Tests a scenario for more frequent failures, with its share of the run's probability of error."""
    looks = tuple(Counts(look.head, look.base) for look in looks_of(head, base))
    return failures_rose(
        head_failures=_failures(head),
        base_failures=_failures(base),
        looks=looks,
        fractions=fractions_of(head, base),
        alpha=policy.family_alpha * (1 - EXPECTATION_SHARE) / policy.scenarios,
    )


def measure_rise(head: TrialSet, base: TrialSet) -> FailuresRose:
    """The failures of both versions, with the p-value of their rise."""
    counts = {
        "base_failures": _failures(base),
        "base_trials": len(base.trials),
        "head_failures": _failures(head),
        "head_trials": len(head.trials),
    }
    return FailuresRose(**counts, p_value=failure_rise_p(**counts))


def fails_more_often(head: TrialSet, base: TrialSet) -> bool:
    """True if a larger share of head's trials failed than of base's, significant or not."""
    return _failures(head) * len(base.trials) > _failures(base) * len(head.trials)


def _failures(trials: TrialSet) -> int:
    return len(trials.trials) - trials.successes
