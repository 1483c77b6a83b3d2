"""Numbers that a report shows next to the verdict: summaries, drifts, and segments and processes that changed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final

import numpy as np

from pytest_ldos.base.series import Better, Series
from pytest_ldos.base.stats.adjust import remove_covariate
from pytest_ldos.base.stats.counts import share_interval
from pytest_ldos.base.stats.rank_tests import FEWEST_OF_TREND, Sample, Shift, estimate_shift, estimate_trend, rank_sum_p
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.declared import parts_of
from pytest_ldos.measure.metrics.extract import LATENCY, Kept
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.scenario.metrics import DeadlineSpec, MetricKind


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Summary of a metric over the trials of one version.

    Attributes:
        median: of the values of successful trials, in the metric's unit; ``None`` if there are none.
        cv: coefficient of variation of the values; infinite for fewer than two.
        adjusted_cv: the same after the metric's covariates are removed; ``None`` if there is nothing to remove.
        censored: number of trials that failed and count as slower than any.
    """

    median: float | None
    cv: float
    adjusted_cv: float | None
    censored: int


@dataclass(frozen=True, kw_only=True)
class Deadline:
    """Expectation of a scenario on a causal path, and its outcome.

    Attributes:
        path: its name.
        ms: limit of its latency.
        share: share of a trial's passages that must meet the limit.
        passages: number of passages in all trials.
        in_time: number of those that met the limit.
        trials: number of trials that reached the share.
    """

    path: str
    ms: float
    share: float
    passages: int
    in_time: int
    trials: int


@dataclass(frozen=True, kw_only=True)
class Score:
    """Weighted geometric mean of the ratios; displayed, never gated.

    Attributes:
        value: this version over base; null if no metric has a ratio.
        without: metrics of the score that have none.
    """

    value: float | None
    without: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Located:
    """Location of a metric over the trials of a run.

    Attributes:
        median: in the metric's unit; ``None`` if more than half of the trials failed, which count as slower than any.
        low, high: ends of the median's interval; ``None`` if unbounded.
        ratio, ratio_low, ratio_high: to a reference (Hodges–Lehmann, with variation between starts); ``None`` if there
            is no reference or no ratio, or if the end is unbounded.
        values: number of trials that have the metric.
    """

    median: float | None
    low: float | None
    high: float | None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    values: int = 0


def kept_in_trials(trials: TrialSet, deadline: DeadlineSpec) -> list[Kept]:
    """Passages of each motion that met a deadline; a motion without an observed passage missed it."""
    return [trial.deadlines.get(deadline.path, Kept(0, 0)) for trial in trials.motions]


def summarize(metrics: Iterable[Metric], series: Mapping[str, Series]) -> dict[str, Summary]:
    found = ((metric, series.get(metric.name)) for metric in metrics)
    return {
        metric.name: Summary(
            median=median(each.finite) if each.finite else None,
            cv=coefficient_of_variation(each),
            adjusted_cv=_adjusted_variation(metric, each),
            censored=len(each) - len(each.finite),
        )
        for metric, each in found
        if each is not None and each.values
    }


def coefficient_of_variation(series: Series) -> float:
    """Standard deviation over mean of the uncensored values; infinite for fewer than two."""
    values = np.array(series.finite)
    if len(values) < 2 or values.mean() == 0:
        return math.inf
    return float(values.std(ddof=1) / abs(values.mean()))


def _adjusted_variation(metric: Metric, series: Series) -> float | None:
    """The coefficient of variation after covariates are removed; ``None`` for none that vary, or too few values."""
    values = np.array(series.values, dtype=np.float64)
    names = (*metric.adjust_for, *metric.adjust_where_alike)
    if not names or np.count_nonzero(np.isfinite(values)) < 4 or np.any(values <= 0):
        return None
    nothing = np.empty(0)
    logs, explained = np.log(values), 0.0
    for name in names:
        with np.errstate(divide="ignore"):
            causes = np.log(np.array(series.covariates[name], dtype=np.float64))
        (logs, _), share = remove_covariate((logs, nothing), (causes, nothing))
        explained += share
    if explained == 0.0:
        return None
    return float(np.std(logs[np.isfinite(logs)], ddof=1 + len(names)))


def summarize_deadline(deadline: DeadlineSpec, kept: Sequence[Kept]) -> Deadline:
    return Deadline(
        path=deadline.path,
        ms=deadline.ms,
        share=deadline.share,
        passages=sum(each.passages for each in kept),
        in_time=sum(each.in_time for each in kept),
        trials=sum(each.share >= deadline.share for each in kept),
    )


def share_on_cpus(trials: TrialSet) -> tuple[float | None, bool]:
    """Share of the stack's work on its CPUs, ``None`` if unknown; True if it is one of CPU time, not of events."""
    found = [trial.placed for trial in trials.motions if trial.placed is not None]
    is_time = any(each.is_time for each in found)
    found = [each for each in found if each.is_time is is_time]
    return sum(each.on for each in found) / sum(each.whole for each in found) if found else None, is_time


def summarize_deadlines(trials: TrialSet) -> tuple[Deadline, ...]:
    return tuple(summarize_deadline(each, kept_in_trials(trials, each)) for each in trials.spec.deadlines)


CONFIDENCE: Final = 0.95
"""Confidence of intervals that describe a run; a verdict has its own."""

TAIL: Final = (1 - CONFIDENCE) / 2


def success_interval(failures: Sequence[bool]) -> tuple[float, float]:
    return share_interval(failures.count(False), len(failures), confidence=CONFIDENCE)


FEWEST_BLOCKS: Final = 2 * FEWEST_OF_TREND
"""Fewest blocks: with fewer, a trend cannot be distinguished from chance."""

_NOTABLE_P: Final = 0.01
"""p-value below which a drift is reported; with half a dozen metrics, chance alone reports one in twenty sessions."""


@dataclass(frozen=True)
class Drift:
    """Change of a metric over an interleaved session, in both versions together.

    Attributes:
        metric: its name.
        change: from the first pair of blocks to the last, relative to the version's median.
        p_value: two-sided, exact, under random order of the pairs of blocks.
        is_notable: whether the report mentions it.
    """

    metric: str
    change: float
    p_value: float
    is_notable: bool


def find_drift(head: TrialSet, base: TrialSet) -> tuple[Drift, ...]:
    """The drift of each metric over the pairs of blocks of a session, in the order they ran.

    Tests the hypothesis that the pairs are in random order (Mann–Kendall). Each pair is one value: trials of one start
    share its random effects, and would look like a drift if each counted by itself. The two blocks of a pair have
    trials of the same indices and seeds. The pair's value is the mean over both, each relative to its version's median,
    so that neither a difference between the versions nor a common effect of the seeds looks like a drift. Pairs without
    a successful trial of the same index in both versions are left out. Fewer than `FEWEST_BLOCKS` give no result.
    """
    drifts = []
    for name in dict.fromkeys(name for trial in head.trials for name in trial.measurements):
        ours, theirs = _by_index(head, name), _by_index(base, name)
        common = [index for index in sorted(ours.keys() & theirs.keys()) if ours[index][0] == theirs[index][0]]
        levels = [median([values[index][1] for index in common]) if common else 0.0 for values in (ours, theirs)]
        if not all(levels):
            continue
        pairs: dict[int, list[float]] = {ours[index][0]: [] for index in common}
        for index in common:
            pairs[ours[index][0]] += [ours[index][1] / levels[0], theirs[index][1] / levels[1]]
        values = [fmean(pairs[pair]) for pair in sorted(pairs)]
        if (trend := estimate_trend(values)) is not None:
            is_notable = trend.p_value < _NOTABLE_P
            drifts.append(Drift(name, trend.slope * (len(values) - 1), trend.p_value, is_notable=is_notable))
    return tuple(drifts)


def _by_index(trials: TrialSet, name: str) -> dict[int, tuple[int, float]]:
    """Pair of blocks and value of each successful trial, by index."""
    measured = [(trial, trial.measurements.get(name)) for trial in trials.trials if trial.succeeded]
    return {
        trial.index: (trial.block // 2, each.number)
        for trial, each in measured
        if each is not None and each.number is not None
    }


METRIC_PATHS: Final = {metric.name: metric.path for metric in METRICS.values() if metric.path}


def path_of(metric: Metric) -> str:
    kind, _, subject = metric.asked_as.partition(":")
    asked = subject.rpartition(":")[0] if kind == MetricKind.PATH else ""
    return asked or METRIC_PATHS.get(metric.name, "")


@dataclass(frozen=True)
class SegmentChange:
    """Change in the duration of one segment.

    Attributes:
        segment: ``KIND: SUBJECT``.
        base_ns, head_ns: medians over the trials.
        change_ns: Hodges–Lehmann estimate of head minus base.
        low_ns, high_ns: its interval; infinite with too few trials.
        share: share of the sum of all segments' changes, or of those in the direction of the path's metric; negative
            for a change in the opposite direction.
    """

    segment: str
    base_ns: float
    head_ns: float
    change_ns: float
    low_ns: float
    high_ns: float
    share: float

    @property
    def is_certain(self) -> bool:
        """True if the interval excludes zero."""
        return self.low_ns > 0 or self.high_ns < 0


@dataclass(frozen=True)
class Explanation:
    """Changes of a path's latency as a whole and by segment, the largest share first."""

    path: str
    whole: SegmentChange
    changes: tuple[SegmentChange, ...]


def explain(
    base: TrialSet, head: TrialSet, *, directions: Mapping[str, int] | None = None, confidence: float = CONFIDENCE
) -> dict[str, Explanation]:
    """Explains each path that occurs in both runs, by path name.

    A segment that is absent from a trial counts as zero. Failed trials are left out: their paths are incomplete.

    Args:
        directions: by path, 1 if a metric that the path explains became larger, -1 if smaller. A path that did not
            certainly change in this direction has shares of what did, as in a metric of other plans than the path's.
        confidence: level of each interval.
    """
    names, directions = dict.fromkeys(name for trial in head.motions for name in trial.segments_ns), directions or {}
    sides = ((name, _segments(base, name), _segments(head, name)) for name in names)
    tail = (1 - confidence) / 2
    return {
        name: _explain(name, before, after, tail, directions.get(name, 0))
        for name, before, after in sides
        if before and after
    }


def _segments(trials: TrialSet, path: str) -> list[Mapping[str, int]]:
    return [trial.segments_ns[path] for trial in trials.motions if trial.succeeded and path in trial.segments_ns]


def _explain(
    path: str, before: Sequence[Mapping[str, int]], after: Sequence[Mapping[str, int]], tail: float, direction: int
) -> Explanation:
    segments = dict.fromkeys(name for trial in (*after, *before) for name in trial if name != LATENCY)
    shifts = {
        name: estimate_shift(_values(after, name), _values(before, name), tail=tail) for name in (LATENCY, *segments)
    }
    estimates = [shifts[name].estimate for name in segments]
    whole = shifts[LATENCY]
    if direction and min(direction * whole.low, direction * whole.high) <= 0:
        estimates = [each for each in estimates if each * direction > 0]
    total = sum(estimates)
    changes = {
        name: SegmentChange(
            segment=name,
            base_ns=float(np.median(_values(before, name))),
            head_ns=float(np.median(_values(after, name))),
            change_ns=shift.estimate,
            low_ns=shift.low,
            high_ns=shift.high,
            share=shift.estimate / total if total else 0.0,
        )
        for name, shift in shifts.items()
    }
    return Explanation(path, changes.pop(LATENCY), tuple(sorted(changes.values(), key=lambda change: -change.share)))


def _values(trials: Sequence[Mapping[str, int] | Mapping[str, float]], name: str) -> Sample:
    return np.array([trial.get(name, 0) for trial in trials], dtype=np.float64)


@dataclass(frozen=True)
class PartChange:
    """Change of the part of one process, or of one state of a thread."""

    process: str
    change: float  # Hodges–Lehmann estimate of head minus base, in the metric's unit
    low: float  # `low` and `high`: its interval; infinite with too few trials
    high: float
    share: float  # share of the sum of all changes; negative for a change in the opposite direction

    @property
    def is_certain(self) -> bool:
        """True if the interval excludes zero."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class PartsExplanation:
    """Breakdown of a metric's change by process or state, the largest share first."""

    metric: Metric
    parts: tuple[PartChange, ...]


def explain_parts(base: TrialSet, head: TrialSet, metrics: Iterable[Metric]) -> list[PartsExplanation]:
    """Explains each metric that has parts; one that is absent from a trial counts as zero."""
    explained = []
    for metric in metrics:
        old, new = _parts(base, metric), _parts(head, metric)
        if not old or not new:
            continue
        names = dict.fromkeys(name for each in (*new, *old) for name in each)
        shifts = {name: estimate_shift(_values(new, name), _values(old, name), tail=TAIL) for name in names}
        total = sum(shift.estimate for shift in shifts.values())
        changes = (
            PartChange(name, shift.estimate, shift.low, shift.high, shift.estimate / total if total else 0.0)
            for name, shift in shifts.items()
        )
        explained.append(PartsExplanation(metric, tuple(sorted(changes, key=lambda each: -each.share))))
    return explained


def _parts(trials: TrialSet, metric: Metric) -> list[Mapping[str, float]]:
    measured = (each.measurements.get(metric.name) for each in trials.trials if each.succeeded)
    parts = (parts_of(metric, each) for each in measured if each is not None and each.number is not None)
    return [each for each in parts if each]


@dataclass(frozen=True, kw_only=True)
class CaseNumbers:
    """A metric in one case: a goal, a planning problem, or what else a stimulus distinguishes.

    Failed trials count as slower than any, so that a planner that gives up on what takes long is not faster.

    Attributes:
        head, base: the values in both versions; the latter has none without a base.
        shift: of head's logarithms over base's, with the 95 % interval of these trials alone; ``None`` without a base,
            or if a value is zero or less.
        p_value: one-sided, of a change for the worse.
    """

    case: str
    head: Sample
    base: Sample
    shift: Shift | None = None
    p_value: float = 1.0


def numbers_by_case(head: Series, base: Series | None) -> tuple[CaseNumbers, ...]:
    """A metric in each case, the worst first: the largest change for the worse, or without a base the worst median.

    With a base, only the cases of both versions.
    """
    ours, theirs = _by_case(head), {} if base is None else _by_case(base)
    sign = 1 if head.better is Better.LOWER else -1

    def lightness(found: CaseNumbers) -> tuple[bool, float, str]:
        size = median(found.head.tolist()) if found.shift is None else found.shift.estimate
        return base is not None and found.shift is None, -sign * size, found.case

    cases = [case for case in ours if base is None or case in theirs]
    return tuple(sorted((_in_case(each, ours[each], theirs.get(each), sign) for each in cases), key=lightness))


def _by_case(series: Series) -> dict[str, Sample]:
    values: dict[str, list[float]] = {}
    for case, value in zip(series.strata, series.values, strict=True):
        values.setdefault(case, []).append(value)
    return {case: np.array(found) for case, found in values.items()}


def _in_case(case: str, head: Sample, base: Sample | None, sign: int) -> CaseNumbers:
    if base is None or min(head.min(), base.min()) <= 0:
        return CaseNumbers(case=case, head=head, base=np.empty(0) if base is None else base)
    logs = np.log(head), np.log(base)
    shift, p_value = estimate_shift(*logs, tail=TAIL), rank_sum_p(*(sign * each for each in logs))
    return CaseNumbers(case=case, head=head, base=base, shift=shift, p_value=p_value)


def slowest_stages(trials: TrialSet, path: str) -> dict[str, str]:
    """The segment of a path that took most of the time, in the successful trials of each case."""
    totals: dict[str, Counter[str]] = {}
    for trial in trials.motions:
        segments = trial.segments_ns.get(path, {}) if trial.succeeded else {}
        totals.setdefault(trial.goal, Counter()).update({name: segments[name] for name in segments if name != LATENCY})
    return {case: found.most_common(1)[0][0] for case, found in totals.items() if found}
