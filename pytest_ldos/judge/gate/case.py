"""A scenario under judgement: the policy, both versions, expectations of the head alone, and failures."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, Self

from pytest_ldos.base.errors import ConfigurationError, refuse_unknown
from pytest_ldos.base.series import Series
from pytest_ldos.base.stats.counts import Counts, failure_rise_p, failures_rose, mean_shortfall_p, shortfall_p
from pytest_ldos.base.stats.several_tests import Fractions, level_of_last_look, spend
from pytest_ldos.judge.baseline.accepted import SUCCESS_RATE, Accepted
from pytest_ldos.judge.baseline.key import Calibration, MetricNoise
from pytest_ldos.judge.gate import reasons as why
from pytest_ldos.judge.summary import kept_in_trials, summarize_deadline
from pytest_ldos.judge.unchanged import KnownRuns
from pytest_ldos.measure.metrics.catalogue import METRICS, OF_CALLS
from pytest_ldos.measure.metrics.declared import parts_of
from pytest_ldos.measure.metrics.evidence import IN_RUNS, RUNS, RUNS_WITH
from pytest_ldos.measure.metrics.model import OWN_SHARES, Metric
from pytest_ldos.measure.trial.record import Look, TrialSet, metrics_of, to_series, without_other_processes
from pytest_ldos.scenario.metrics import place_of


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Parameters of a decision.

    Attributes:
        alpha: target probability that a run of unchanged code is called regressed; half of it is spent on success
            rates, half on all metrics together.
        scenarios: number of scenarios selected for the run, before the first is judged; `alpha` is divided among them.
        floors: relative effect per metric that is too small to matter; by default the metric's usual floor, or less if
            the host's calibration says so.
        calibrations: variation between equal versions on this host, by scenario.
        known: variation between runs of unchanged stacks on this host; ``None`` if the base is not a stored baseline.
        screens: True if suspicious runs are measured again, interleaved with the base, before they are judged. The MDE
            of a stored comparison is then that of the screen.
        relevant_effect: if allowed, trials are added until a larger change for the worse is ruled out or a change is
            certain.
        doubt: probability of error at which `relevant_effect` is ruled out.
        required: metrics that must be judged; by default T1, T1mean, T2x, T3mean, T4, T5mean and call, as far as this
            host can judge them. Any other metric that cannot be judged is reported as such, without effect on the
            verdict. Success rates are always judged.
        largest_invalid_share: largest share of trials with an invalid measurement.
        metrics: names of all metrics that can be judged; a floor for any other name is refused.
        accepted: changes that apply to this comparison, by metric, from the base's commit.
        accepted_unreadable: the reason if the base's file of accepted changes cannot be read.
    """

    alpha: float = 0.01
    scenarios: int = 1
    floors: Mapping[str, float] = field(default_factory=dict)
    calibrations: Mapping[str, Calibration] = field(default_factory=dict)
    known: KnownRuns | None = None
    screens: bool = False
    relevant_effect: float = 0.1
    doubt: float = 0.05
    required: tuple[str, ...] | None = None
    largest_invalid_share: float = 0.1
    metrics: Collection[str] = frozenset({*METRICS, *OF_CALLS})
    accepted: Mapping[str, Accepted] = field(default_factory=dict)
    accepted_unreadable: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 0.5:
            raise ConfigurationError(
                f"alpha is {self.alpha}", remedy="set alpha in [tool.ldos.gate] to a number above 0 and below 0.5"
            )
        if not 0 < self.relevant_effect < math.inf:
            raise ConfigurationError(f"relevant_effect is {self.relevant_effect}; it must be a number above 0")
        refuse_unknown(self.floors, self.metrics, "metric with an effect floor:")
        refuse_unknown(self.required or (), self.metrics, "metric that is required:")
        if not all(0 <= floor < math.inf for floor in self.floors.values()):
            raise ConfigurationError("an effect floor is a number, 0 or above")

    @classmethod
    def configured(cls, table: Mapping[str, Any], *, scenarios: int, own: Iterable[str] = ()) -> Self:
        """The policy of a valid ``[tool.ldos.gate]`` table; `own` are metrics in addition to the built-in ones."""
        required = {"required": tuple(table["required"])} if "required" in table else {}
        return cls(**{**table, **required}, scenarios=max(1, scenarios), metrics=frozenset({*METRICS, *OF_CALLS, *own}))

    @property
    def family_alpha(self) -> float:
        """Error probability for the metrics of all scenarios together; success rates have as much again."""
        return self.alpha / 2

    def noise(self, scenario: str, metric: str) -> MetricNoise | None:
        """Noise of a metric between equal versions; ``None`` if this host was not calibrated for it."""
        calibration = self.calibrations.get(scenario)
        return None if calibration is None else calibration.metrics.get(metric)


IN_PLACE_OF: Final[Mapping[str, Collection[str]]] = {
    "T1": {"T1mean"},
    "T2": {"T2x"},
    "T3": {"T3mean", "T3p90"},
    "T3p99": {"T3p90"},
    "T5": {"T5mean"},
    "T5p99": {"T5mean"},
}
"""Metrics of the same quantity that are judged in place of a metric, by its name."""

USUALLY_SHOWN: Final = frozenset({"T2", "T3", "T5"})
"""Metrics that are only shown if those in their place are judged, unless a change for the worse is certain."""


def have_little(metrics: Collection[str], required: Collection[str] = ()) -> frozenset[str]:
    """Metrics with a small share of the error budget: not required, and those in their place are compared, too."""
    return frozenset(name for name in USUALLY_SHOWN if name not in required and {*IN_PLACE_OF[name]} <= {*metrics})


def metric_shares(metrics: Iterable[Metric]) -> dict[str, float]:
    """Share of each metric that is judged in a scenario.

    A user's own metrics have a reserved share, so that adding one does not affect the others. Metrics of paths, topics
    and processes come from the project's settings, with their weight.
    """
    judged = tuple(metrics)
    are_own = [metric.name not in METRICS and not metric.asked_as for metric in judged]
    own, others = (
        sum(metric.error_share for metric, is_own in zip(judged, are_own, strict=True) if is_own is wanted)
        for wanted in (True, False)
    )
    return {metric.name: metric.error_share / (max(own, OWN_SHARES) + others) for metric in judged}


@dataclass(frozen=True)
class Case:
    """Head and base of one scenario, with the metrics of both by name; head's description takes precedence."""

    head: TrialSet
    base: TrialSet
    metrics: Mapping[str, Metric]
    head_series: Mapping[str, Series]
    base_series: Mapping[str, Series]

    @classmethod
    def of(cls, head: TrialSet, base: TrialSet) -> Case:
        metrics = metrics_of(head, base)
        ours, theirs = ({name: to_series(trials, each) for name, each in metrics.items()} for trials in (head, base))
        return cls(head, base, metrics, ours, theirs)

    @property
    def is_interleaved(self) -> bool:
        return self.head.is_interleaved_with(self.base)

    def series(self, metric: str) -> tuple[Series, Series]:
        """Head's and base's series of a metric, as compared."""
        return without_other_processes(self.head_series[metric], self.base_series[metric])


def failures_of(trials: TrialSet) -> int:
    return len(trials.trials) - trials.successes


def fails_more_often(head: TrialSet, base: TrialSet) -> bool:
    """True if a larger share of head's trials failed than of base's, significant or not."""
    return failures_of(head) * len(base.trials) > failures_of(base) * len(head.trials)


def looks_of(head: TrialSet, base: TrialSet) -> tuple[Look, ...]:
    """Numbers of trials at each look of the comparison so far; the last entry is the present look.

    Looks that do not lead up to the present numbers belong to another base and are dropped.
    """
    now, earlier = Look(len(head.trials), len(base.trials)), [Look(0, 0)]
    for look in head.looks if _looked_at(head, base) else ():
        before = earlier[-1]
        grows = before.head <= look.head <= now.head and before.base <= look.base <= now.base
        if grows and before.information < look.information < now.information:
            earlier.append(look)
    return (*earlier[1:], now)


def _looked_at(head: TrialSet, base: TrialSet) -> bool:
    """True if the recorded looks were taken at a comparison with this base."""
    if head.session:
        return head.is_interleaved_with(base)
    return all(look.base == len(base.trials) for look in head.looks)


def fractions_of(head: TrialSet, base: TrialSet) -> Fractions:
    """Information fraction of each look: its information over the largest possible."""
    looks = looks_of(head, base)
    if looks[-1].information == 0:
        return (1.0,)
    last = head.last_look if head.last_look is not None and _looked_at(head, base) else looks[-1]
    most = max(last.information, looks[-1].information)
    return tuple(look.information / most for look in looks)


def level(alpha: float, fractions: Fractions) -> float:
    return alpha if fractions == (1.0,) else level_of_last_look(alpha, fractions)


EXPECTATION_SHARE: Final = 0.2
"""Share of the success rates' probability of error spent here; the rest is for the comparison with the baseline."""


def missed_expectations(head: TrialSet, policy: Policy) -> list[why.Reason]:
    """Expectations that were significantly missed, the success rate first."""
    whole = policy.family_alpha * EXPECTATION_SHARE / policy.scenarios
    each_alpha = whole / (1 + len(head.spec.deadlines))
    now, rate = len(head.trials), head.spec.success_rate
    most = max(now, head.last_look.head if head.last_look else now)
    before = max((look.head for look in head.looks if look.head < now), default=0)
    # All looks together spend at most the whole share.
    alpha = spend(each_alpha, now / most) - spend(each_alpha, before / most)
    is_missed = shortfall_p(successes=head.successes, trials=now, expected_rate=rate) < alpha
    missed = [why.MissedSuccessRate(head.successes, now, rate)] if is_missed else []
    return [*missed, *_missed_deadlines(head, alpha), *_found_any(head)]


def _found_any(head: TrialSet) -> Iterator[why.FoundAny]:
    for metric in (each for each in head.metrics if place_of(each.asked_as)[1]):
        measured = (each.measurements.get(metric.name) for each in head.trials)
        found = [each for each in measured if each is not None and each.number is not None]
        number, runs, having = (sum(int(each.details[name]) for each in found) for name in (IN_RUNS, RUNS, RUNS_WITH))
        if number:
            by = tuple(dict.fromkeys(name for each in found for name in parts_of(metric, each)))
            yield why.FoundAny(metric.name, number, runs, having, by)


def falls_short(head: TrialSet) -> list[why.ShortOfSuccessRate]:
    """The shortfall of the success rate, significant or not; empty if there is none."""
    expected, trials = head.spec.success_rate, len(head.trials)
    return [why.ShortOfSuccessRate(head.successes, trials, expected)] if head.successes < expected * trials else []


def _missed_deadlines(head: TrialSet, alpha: float) -> Iterator[why.MissedDeadline]:
    """Tests each deadline: as a rate over the trials if each trial passes the path at most once. Otherwise passages of
    one trial depend on each other, so the shares of the trials are tested instead.
    """
    for deadline in head.spec.deadlines:
        kept = kept_in_trials(head, deadline)
        found = summarize_deadline(deadline, kept)
        if all(each.passages <= 1 for each in kept):
            p_value = shortfall_p(successes=found.trials, trials=len(kept), expected_rate=deadline.share)
        else:
            p_value = mean_shortfall_p([each.share for each in kept], deadline.share)
        if p_value < alpha:
            yield why.MissedDeadline(**{**vars(found), "keeping": found.trials, "trials": len(kept)})


_MOST_GOALS: Final = 5


def find_failures(head: TrialSet) -> list[why.TrialsFailed]:
    """Failed trials by the way they failed, and by goal unless very many goals failed in this way."""
    several = len({trial.goal for trial in head.trials}) > 1
    ways: dict[tuple[str, int | None, str], dict[str, list[int]]] = {}
    for trial in head.trials:
        if not trial.succeeded:
            goals = ways.setdefault((trial.outcome.value, trial.moveit_code, trial.message), {})
            goals.setdefault(trial.goal if several else "", []).append(trial.index + 1)
    found = []
    for (outcome, code, message), goals in ways.items():
        shown = goals if len(goals) <= _MOST_GOALS else {"": sorted(chain.from_iterable(goals.values()))}
        found += [why.TrialsFailed(tuple(each), outcome, code, goal, message) for goal, each in shown.items()]
    return found


def failures_became_more(head: TrialSet, base: TrialSet, policy: Policy) -> bool:
    """True if failures rose significantly, given the scenario's share of the run's probability of error."""
    return failures_rose(
        head_failures=failures_of(head),
        base_failures=failures_of(base),
        looks=tuple(Counts(look.head, look.base) for look in looks_of(head, base)),
        fractions=fractions_of(head, base),
        alpha=policy.family_alpha * (1 - EXPECTATION_SHARE) / policy.scenarios,
    )


def find_rise(head: TrialSet, base: TrialSet, policy: Policy) -> why.FailuresRose | why.AcceptedChange | None:
    """The significant rise of failures, if any; it is accepted unless head fails significantly more often than that."""
    if not failures_became_more(head, base, policy):
        return None
    counts = {
        "base_failures": failures_of(base),
        "base_trials": len(base.trials),
        "head_failures": failures_of(head),
        "head_trials": len(head.trials),
    }
    rose, accepted = why.FailuresRose(**counts, p_value=failure_rise_p(**counts)), policy.accepted.get(SUCCESS_RATE)
    if accepted is None:
        return rose
    p_value = shortfall_p(successes=head.successes, trials=rose.head_trials, expected_rate=1 - accepted.size)
    is_within = p_value >= policy.family_alpha / policy.scenarios  # not if it is NaN, as it is for a size of no share
    return why.AcceptedChange(rose, accepted) if is_within else rose
