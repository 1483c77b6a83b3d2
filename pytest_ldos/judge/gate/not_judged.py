"""Metrics that this host cannot judge within the budget: they are reported, and do not turn the verdict.

The minimum detectable effect decides, never the effect that was seen. A metric that is not judged still regresses: a
change large enough to be certain is reported all the same.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Final

from scipy.special import ndtri

from pytest_ldos.base.stats.power import POWER, smallest_detectable_shift
from pytest_ldos.judge.baseline.calibration import MetricNoise
from pytest_ldos.judge.gate.case import Case
from pytest_ldos.judge.gate.comparison import Comparison
from pytest_ldos.judge.gate.contrast import log_to_effect
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.reasons import JudgedBy, NotClear, NotJudged, RequiredMetric
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.trial.record import Look

_STEADY: Final = frozenset({"T1mean", "T2x", "T3mean", "T4", "T5mean", "call"})
"""Metrics of which few trials are enough on most hosts; they stand for others of the same quantity."""

USUALLY_REQUIRED: Final = _STEADY | {"T1"}
"""Metrics that are judged on every host that can, unless the project names others; T1 where T1mean is not judged."""

_MARGIN: Final = 1.5
"""Factor by which a predicted effect must miss its bound: spreads are known from few trials."""


def set_aside(comparisons: Sequence[Comparison], case: Case, policy: Policy) -> list[Comparison]:
    """The comparisons, with those that cannot be decided on this host `NOT_JUDGED` instead of inconclusive."""
    return [_set_aside(each, stand_ins(each.metric, comparisons), case, policy) for each in comparisons]


def _set_aside(found: Comparison, instead: Sequence[str], case: Case, policy: Policy) -> Comparison:
    if found.verdict is not Verdict.INCONCLUSIVE or _is_required(found, instead, case, policy):
        return found
    more = None if instead else found.more_trials_because
    return dataclasses.replace(found, location=Verdict.NOT_JUDGED, more_trials_because=more)


def stand_ins(metric: str, comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """Metrics of the same quantity that are judged, where this one is not: T3mean for T3."""
    if metric in _STEADY or metric not in METRICS:
        return ()
    undecided = (Verdict.INCONCLUSIVE, Verdict.NOT_JUDGED)
    judged = [each.metric for each in comparisons if each.metric in _STEADY and each.verdict not in undecided]
    return tuple(name for name in judged if _quantity(name) == _quantity(metric))


def _quantity(name: str) -> str:
    return METRICS[name].refines or name if name in METRICS else name


def _is_required(found: Comparison, instead: Sequence[str], case: Case, policy: Policy) -> bool:
    """True if the verdict must wait for this metric.

    Where the project names none: if its samples are too small or begin at zero, which is no property of the host; and
    if the calibration says that this host can judge it, so that something disturbed this run. Counts of what the
    settings name, such as page faults and misses, begin at zero in most stacks, and nothing waits for them.
    """
    if policy.required is not None:
        return found.metric in policy.required
    if math.isinf(found.mde) or (found.is_from_zero and not case.metrics[found.metric].asked_as):
        return True
    if found.metric not in USUALLY_REQUIRED or instead:
        return False
    usual = usual_mde(found, case, policy)
    return _MARGIN * math.log1p(usual) <= math.log1p(_bound(found, case))


def usual_mde(found: Comparison, case: Case, policy: Policy) -> float:
    """The minimum detectable effect of such a comparison by the host's calibration; infinite if it is not known."""
    noise = policy.noise(case.head.scenario, found.metric)
    if noise is None or not found.head_count or not found.base_count:
        return math.inf
    error = math.sqrt(_variance(noise, case, found))
    half_width = -float(ndtri(found.tail)) * error
    shift = smallest_detectable_shift(half_width, tail=found.tail, floor=math.log1p(found.floor))
    return log_to_effect(shift)


def _variance(noise: MetricNoise, case: Case, found: Comparison) -> float:
    """Variance of the estimated shift between equal versions."""
    between = noise.start_sd**2 * sum(1 / max(1, count) for count in _starts(found, case))
    if not case.is_interleaved:
        between += 2 * max(noise.run_sd**2 - noise.start_sd**2, 0.0)
    return noise.trial_sd**2 * (1 / found.head_count + 1 / found.base_count) + between


def unmeasured(case: Case, policy: Policy) -> list[RequiredMetric]:
    """Metrics that the project requires, of which neither version has a value."""
    values = (case.head_series, case.base_series)
    names = policy.required or ()
    return [RequiredMetric(name) for name in names if not any(len(each.get(name, ())) for each in values)]


def explain_set_aside(comparisons: Sequence[Comparison], case: Case, policy: Policy) -> Iterator[NotJudged | JudgedBy]:
    """Reasons for metrics that are not judged; those for which others stand share one, unless they may be worse."""
    stood_for: dict[tuple[str, ...], list[str]] = {}
    for each in comparisons:
        if each.verdict is not Verdict.NOT_JUDGED:
            continue
        reason, others = _explain(each, case, policy), stand_ins(each.metric, comparisons)
        if others and not reason.may_be_worse:
            stood_for.setdefault(others, []).append(each.metric)
        else:
            yield reason
    yield from (JudgedBy(tuple(metrics), others) for others, metrics in stood_for.items())


def _explain(found: Comparison, case: Case, policy: Policy) -> NotJudged:
    """The reason for a metric that is not judged, with the number of trials that would be enough."""
    bound, is_calibrated = _bound(found, case), policy.noise(case.head.scenario, found.metric) is not None
    trials = _enough_trials(found, bound) if case.is_interleaved else 0  # apart, runs differ however many trials
    return NotJudged(found, bound, trials, is_calibrated, may_be_worse=found.p_value <= policy.doubt)


def _starts(found: Comparison, case: Case) -> list[int]:
    """Number of starts of head and of base that have values of a metric."""
    return [len(set(series.blocks)) for series in case.series(found.metric)]


def _enough_trials(found: Comparison, bound: float) -> int:
    """Trials of each version, in as many more starts, that could detect an effect of `bound`; 0 if none could."""
    if math.isinf(found.mde) or found.floor >= bound:
        return 0
    certainty = float(ndtri(POWER))
    both = certainty - float(ndtri(found.tail))
    reach, floor, wanted = (math.log1p(effect) for effect in (found.mde, found.floor, bound))
    error = min(reach / both, (reach - floor) / certainty)
    enough = min(wanted / both, (wanted - floor) / certainty)
    return math.ceil(2 * Look(found.head_count, found.base_count).information * (error / enough) ** 2)


def explain_undecided(found: Comparison, case: Case, policy: Policy) -> NotClear:
    """The reason for a metric that is required and undecided, with what this host usually detects."""
    return NotClear(found, usual_mde(found, case, policy))


def _bound(found: Comparison, case: Case) -> float:
    return case.metrics[found.metric].largest_tolerable_mde
