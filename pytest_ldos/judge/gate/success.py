"""Success rates: how trials failed, and whether failures became more frequent."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ldos.base.stats.failure_rise import Counts, failures_rose
from pytest_ldos.base.stats.success import failure_rise_p
from pytest_ldos.judge.gate.expectations import EXPECTATION_SHARE
from pytest_ldos.judge.gate.levels import fractions_of, looks_of
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.measure.trial.record import TrialSet


def describe_failures(head: TrialSet) -> list[str]:
    """One sentence for each kind of failure among the trials."""
    several = len({trial.goal for trial in head.trials}) > 1
    by_message: dict[str, list[int]] = {}
    for trial in head.trials:
        if not trial.succeeded:
            code = "" if trial.moveit_code is None else f" (MoveIt code {trial.moveit_code})"
            goal = f" of goal '{trial.goal}'" if several else ""
            by_message.setdefault(f"{trial.outcome}{code}{goal}: {trial.message}", []).append(trial.index + 1)
    return [f"trial {', '.join(map(str, numbers))} {message}" for message, numbers in by_message.items()]


def find_rises(pairs: Sequence[tuple[TrialSet, TrialSet]], policy: Policy) -> list[bool]:
    """Tests each scenario of a run for more frequent failures; Holm's procedure covers all of them."""
    rose, scenarios = [False] * len(pairs), max(policy.scenarios, len(pairs))
    while True:
        left = scenarios - sum(rose)
        alpha = policy.family_alpha * (1 - EXPECTATION_SHARE) / max(left, 1)
        now = [before or _rose(head, base, alpha) for before, (head, base) in zip(rose, pairs, strict=True)]
        if now == rose:
            return rose
        rose = now


def describe_rise(head: TrialSet, base: TrialSet) -> str:
    """Describes by how much failures became more frequent."""
    p_value = failure_rise_p(
        head_failures=_failures(head),
        head_trials=len(head.trials),
        base_failures=_failures(base),
        base_trials=len(base.trials),
    )
    before, after = (f"{_failures(each)} of {len(each.trials)}" for each in (base, head))
    return f"failures rose from {before} to {after} (p = {p_value:.2g}, Boschloo's exact test)"


def fails_more_often(head: TrialSet, base: TrialSet) -> bool:
    """True if a larger share of head's trials failed than of base's, significant or not."""
    return _failures(head) * len(base.trials) > _failures(base) * len(head.trials)


def _rose(head: TrialSet, base: TrialSet, alpha: float) -> bool:
    looks = tuple(Counts(look.head, look.base) for look in looks_of(head, base))
    fractions = fractions_of(head, base)
    return failures_rose(
        head_failures=_failures(head), base_failures=_failures(base), looks=looks, fractions=fractions, alpha=alpha
    )


def _failures(trials: TrialSet) -> int:
    return len(trials.trials) - trials.successes
