"""Makes two series comparable: removes goal levels, drift and covariates, and estimates the variance between starts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from pytest_ldos.base.series import Better, Series
from pytest_ldos.base.stats import adjust
from pytest_ldos.base.stats.rank_tests import Sample, Shift, estimate_shift, rank_sum_p
from pytest_ldos.base.stats.starts import (
    UNKNOWN,
    Extra,
    Starts,
    Variance,
    pool,
    variance_between_paired_starts,
    variance_between_starts,
)
from pytest_ldos.judge.baseline.key import ENOUGH_RUNS, MetricNoise
from pytest_ldos.judge.unchanged import Between
from pytest_ldos.measure.metrics.model import Metric

_LARGEST_LOG: Final = 700.0
"""Logarithm of approximately the largest floating-point number."""

_SUPPOSED_SHARE: Final = 0.5
"""Assumed standard deviation between starts where it is unknown, in standard deviations between trials. Without it,
versions interleaved over two blocks each were called regressed several times as often as allowed on hosts where starts
differ by this much."""

_LEAST_SUPPOSED: Final = 0.5
"""Least standard deviation assumed between starts, in units of the metric's usual floor: small variation between trials
does not imply small variation between starts."""

_MOST_SUPPOSED: Final = {"T1": 0.053, "T1mean": 0.053}
"""Largest standard deviation assumed between interleaved starts, relative, of metrics whose trials vary with the
planner's randomness, which starts do not share. It is the record's of T1mean on MoveIt (0.029 on the embedded stack);
T1 of 300 planning problems varied by 0.37 between trials and by less than 0.05 between ten starts."""

_SUPPOSED_DEGREES: Final = 5.0
"""Degrees of freedom of the variance assumed between starts; a few measured starts outweigh it."""

_RESOLUTION: Final = 0.1
"""Assumed variance between runs if it is not calibrated, in variances between trials and in addition to one variance
between starts. Trials of one run cannot distinguish it from zero."""

_ASSUMED_DEGREES: Final = 4.0
"""Degrees of freedom of the variance assumed between runs. With fewer, doublings are not found. With more, unchanged
code is called regressed on machines that drift: under the scorecard's strong drift, in 41 % of runs with six, and in 16
% with four."""

_DEGREES_OF_A_START: Final = 0.25
"""Degrees of freedom that each start adds to the assumed variance between runs."""

_ENOUGH_DEGREES: Final = ENOUGH_RUNS - 1.0
"""Degrees of freedom with which a calibration is used for the variance between runs without an assumption."""

_EXTREME: Final = 2.0
"""Distance from the middle of the sample, in scales, at which values are winsorised."""

_EXTREME_STORED: Final = 3.0
"""The same for versions measured at different times. With two, 1.0 % of unchanged runs of our recordings were red; with
three, none of 500."""

_UNLIKE: Final = 0.001
"""p-value below which a covariate is taken to differ between the versions."""

_NOTHING: Final = Between()


def log_to_effect(shift: float) -> float:
    """Converts a shift of logarithms to a relative effect; infinite if that overflows."""
    return math.expm1(shift) if math.isfinite(shift) and shift <= _LARGEST_LOG else math.inf


@dataclass(frozen=True)
class Contrast:
    """Two samples made comparable: adjusted, on a scale where a shift is an effect.

    Attributes:
        head, base: values with the sign chosen so that larger is worse, whatever the metric's direction.
        scale: relative effect of a shift of 1; 0 on logarithms.
        explained: share of variance explained by covariates and removed.
        unlike: covariates that were not removed, because they differ between the versions.
        extra: variance of the shift in addition to that from the spread within the samples.
        is_assumed: True if the variance between runs is assumed, because neither the record nor this host has it.
        goals: goal of each value.
        is_mean: True if the shift is the mean over goals, each with equal weight, False if that of a typical trial.
    """

    head: Sample
    base: Sample
    sign: float
    scale: float
    explained: float
    unlike: tuple[str, ...]
    extra: Extra
    is_interleaved: bool
    is_assumed: bool
    starts: tuple[Starts, Starts]
    goals: tuple[adjust.Words, adjust.Words]
    is_mean: bool = False

    def ratio(self, shift: float) -> float:
        if self.scale == 0.0:
            power = self.sign * shift
            return math.exp(power) if power < _LARGEST_LOG else math.inf
        return 1 + self.sign * shift * self.scale

    def to_shift(self, effect: float) -> float:
        return math.log1p(effect) if self.scale == 0.0 else effect / self.scale

    def to_effect(self, shift: float) -> float:
        if self.scale == 0.0:
            return log_to_effect(shift)
        return shift * self.scale if math.isfinite(shift) else math.inf

    @property
    def is_observed(self) -> bool:
        """True if at least half of each sample is uncensored, so that its median was observed."""
        return all(2 * np.count_nonzero(np.isfinite(values)) >= len(values) > 0 for values in (self.head, self.base))

    @property
    def spread(self) -> float:
        """Standard deviation between trials of one version, as a shift; robust to single outliers."""
        return _spread((self.head, self.base))

    @cached_property
    def _winsorised(self) -> tuple[Sample, Sample]:
        """Both samples, winsorised: an interval with a small error would otherwise reach up to each outlier."""
        reach = _EXTREME if self.is_interleaved else _EXTREME_STORED
        head, base = adjust.draw_in_extremes((self.head, self.base), reach=reach)
        return head, base

    @cached_property
    def _mean(self) -> adjust.MeanShift | None:
        return adjust.average_strata((self.head, self.base), self.goals) if self.is_mean else None

    @property
    def p_value(self) -> float:
        p_value = rank_sum_p(*self._winsorised) if self._mean is None else self._mean.p_value
        return self.extra.widened_p(p_value, self._shift(0.5))

    def shift(self, *, tail: float) -> Shift:
        """Estimated shift of head towards worse; `tail` is the probability of error of each end of its interval."""
        return self.extra.widen(self._shift(tail), tail=tail)

    def _shift(self, tail: float) -> Shift:
        return estimate_shift(*self._winsorised, tail=tail) if self._mean is None else self._mean.shift(tail=tail)


@dataclass(frozen=True)
class _Side:
    values: Sample
    goals: npt.NDArray[np.str_]
    questions: npt.NDArray[np.str_]
    blocks: npt.NDArray[np.int64]
    causes: dict[str, Sample]

    @classmethod
    def of(cls, series: Series) -> _Side:
        return cls(
            np.array(series.values, dtype=np.float64),
            np.array(series.strata, dtype=np.str_),
            np.array(series.questions or ("",) * len(series), dtype=np.str_),
            np.array(series.blocks, dtype=np.int64),
            {name: np.array(values, dtype=np.float64) for name, values in series.covariates.items()},
        )

    def only(self, chosen: npt.NDArray[np.bool_]) -> _Side:
        causes = {name: values[chosen] for name, values in self.causes.items()}
        return _Side(self.values[chosen], self.goals[chosen], self.questions[chosen], self.blocks[chosen], causes)

    @property
    def pairs(self) -> npt.NDArray[np.int64]:
        """Pair of each value: two neighbouring starts, one of each version."""
        return self.blocks // 2


def contrast(
    metric: Metric,
    head: Series,
    base: Series,
    *,
    is_interleaved: bool,
    noise: MetricNoise | None = None,
    prior: Between | None = None,
    here: Between = _NOTHING,
    base_runs: int = 1,
) -> Contrast:
    """Adjusts two series for goals, drift and covariates.

    Effects are ratios, so logarithms are compared. A series with values of zero or less (possible for latencies beyond
    a plan) is compared by differences relative to the base's median.

    Args:
        noise: variation between equal versions on this host.
        prior: variation between them on machines of the record; ``None`` for a metric that it does not have.
        here: variation between runs of unchanged stacks on this host.
    """
    sides = _comparable(_Side.of(head), _Side.of(base), is_interleaved=is_interleaved)
    finite = np.concatenate([side.values[np.isfinite(side.values)] for side in sides])
    on_logs = bool(np.all(finite > 0))
    scale = 0.0 if on_logs else 1 / (abs(_median(sides[1].values)) or float(np.abs(finite).mean()) or 1.0)
    if on_logs:
        sides = _on_logs(sides[0]), _on_logs(sides[1])
    unlike = tuple(name for name in metric.adjust_where_alike if not _is_alike(sides, name))
    names = [name for name in (*metric.adjust_for, *metric.adjust_where_alike) if name not in unlike]
    levels = _Levels.of(sides, names, is_interleaved=is_interleaved)
    values, explained = _without_covariates(sides, names, levels)
    sign = 1.0 if metric.better is Better.LOWER else -1.0
    unit = 1.0 if on_logs else 1 / scale
    if noise is not None:  # that of ratios, in units of the values
        noise = replace(noise, **{name: getattr(noise, name) * unit for name in ("trial_sd", "start_sd", "run_sd")})
    known = _Known(
        noise,
        None if prior is None else prior.scaled(unit**2),
        here.scaled(unit**2),
        _LEAST_SUPPOSED * metric.usual_floor * unit,
        _MOST_SUPPOSED.get(metric.name, math.inf) * unit if is_interleaved else math.inf,
    )
    raw = sides[0].values, sides[1].values
    inflation, degrees = levels.cost(raw)
    between = _between(sides, values, known, levels.matching.inflation(raw), base_runs, is_interleaved=is_interleaved)
    return Contrast(
        sign * values[0],
        sign * values[1],
        sign,
        scale,
        explained,
        unlike,
        Extra(between, inflation, degrees),
        is_interleaved,
        not is_interleaved and prior is None and not here.runs.degrees,
        (sides[0].blocks, sides[1].blocks),
        (sides[0].goals, sides[1].goals),
    )


def _comparable(head: _Side, base: _Side, *, is_interleaved: bool) -> tuple[_Side, _Side]:
    """Keeps the goals, and for interleaved versions the pairs of blocks, that both versions have."""
    before = -1
    while len(head.values) + len(base.values) != before:  # dropping a pair may leave a goal on one side only
        before = len(head.values) + len(base.values)
        of_head, of_base = adjust.in_common_strata((head.goals, base.goals))
        head, base = head.only(of_head), base.only(of_base)
        if is_interleaved:
            of_head, of_base = adjust.in_common_strata((head.pairs, base.pairs))
            head, base = head.only(of_head), base.only(of_base)
    return head, base


def _on_logs(side: _Side) -> _Side:
    with np.errstate(divide="ignore", invalid="ignore"):
        return replace(
            side, values=np.log(side.values), causes={name: np.log(each) for name, each in side.causes.items()}
        )


def _is_alike(sides: tuple[_Side, _Side], name: str) -> bool:
    known = [side.only(np.isfinite(side.causes[name])) for side in sides]
    if any(len(side.values) == 0 for side in known):
        return True
    head, base = adjust.remove_strata((known[0].causes[name], known[1].causes[name]), (known[0].goals, known[1].goals))
    return min(rank_sum_p(head, base), rank_sum_p(base, head)) > _UNLIKE / 2


_Groups = tuple[npt.NDArray[np.str_], npt.NDArray[np.str_]] | tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


@dataclass(frozen=True)
class _Levels:
    """Levels within which two samples are compared: goals, pairs of starts, and questions."""

    groups: tuple[_Groups, ...]
    matching: adjust.Matching

    @classmethod
    def of(cls, sides: tuple[_Side, _Side], names: list[str], *, is_interleaved: bool) -> _Levels:
        """The levels of two samples; the share that questions explain is computed after covariates are removed."""
        head, base = sides
        groups: list[_Groups] = [(head.goals, base.goals), *([(head.pairs, base.pairs)] if is_interleaved else [])]
        nothing = cls(tuple(groups), adjust.number_questions((head.questions, base.questions), groups[-1]))
        values, _ = _without_covariates(sides, names, nothing)
        return replace(nothing, matching=adjust.match(values, (head.questions, base.questions), groups[-1]))

    def remove(self, values: tuple[Sample, Sample]) -> tuple[Sample, Sample]:
        for both in self.groups:
            values = adjust.remove_strata(values, both)
        return self.matching.remove_levels(values)

    def cost(self, values: tuple[Sample, Sample]) -> tuple[float, tuple[float, float]]:
        """Inflation of the variance for spent degrees of freedom, their total, and how many are left."""
        count = sum(map(len, values))
        levels = sum(np.unique(np.concatenate(both)).size - 1 for both in self.groups)
        spent = levels + self.matching.spent(values, levels=levels)
        if spent == 0:  # the rank test's own distribution is exact
            return 1.0, Extra().degrees
        return count / max(count - spent, 1), (max(count - 2.0, 1.0), max(count - 2.0 - spent, 1.0))


def _without_covariates(
    sides: tuple[_Side, _Side], names: list[str], levels: _Levels
) -> tuple[tuple[Sample, Sample], float]:
    """Values without levels and covariates, and the share of variance that covariates explained."""
    values, explained = levels.remove((sides[0].values, sides[1].values)), 0.0
    for name in names:
        causes = levels.remove((sides[0].causes[name], sides[1].causes[name]))
        values, share = adjust.remove_covariate(values, causes)
        explained += (1 - explained) * share
    return values, explained


@dataclass(frozen=True)
class _Known:
    """Prior knowledge of the differences between equal starts and runs, in units of the values.

    By this host's calibration, by the record, and by runs of unchanged stacks on this host; `least` and `most` limit
    the standard deviation assumed between starts if the record has none.
    """

    noise: MetricNoise | None
    prior: Between | None
    here: Between
    least: float
    most: float

    def beforehand(self, within: float) -> Between | None:
        """The record's variances; if trials vary more than the record's, those of starts and runs are scaled up."""
        if self.prior is None:
            return None
        usual = self.prior.trials.value
        return self.prior.scaled(max(1.0, within / usual) if usual > 0 else 1.0)

    def assumed_starts(self, within: float) -> Variance:
        supposed = min(_SUPPOSED_SHARE**2 * within, self.most**2)
        return Variance(max(supposed, self.least**2), _SUPPOSED_DEGREES)

    def starts(self, within: float) -> Variance:
        """Variance between starts, assumed without a record, because a few starts cannot estimate it."""
        known = self.beforehand(within)
        of_starts = [self.assumed_starts(within) if known is None else known.starts, self.here.starts]
        if self.noise is not None:
            calibrated = Variance(self.noise.start_sd**2, self.noise.start_df)
            of_starts = [calibrated, self.here.starts] if known is None else [calibrated, *of_starts]
        return pool(of_starts)

    def runs(self, within: float) -> Variance:
        """Variance between runs, including that of their starts, from the record and this host."""
        noise, known = self.noise, self.beforehand(within)
        calibrated = Variance(noise.run_sd**2, noise.run_df) if noise else UNKNOWN
        return pool([UNKNOWN if known is None else known.runs, calibrated, self.here.runs])

    def assumed_runs(self, seen: Sequence[Variance], within: float, starts: int) -> Variance:
        """Variance between runs beyond that between starts; assumed from the latter for a metric not in the record."""
        noise = self.noise
        calibrated = Variance(noise.run_sd**2 - noise.start_sd**2, noise.run_df) if noise else UNKNOWN
        here = pool([calibrated, self.here.runs])
        either = self.starts(within), self.assumed_starts(within)
        level = max(0.0, *(pool([*seen, each]).value for each in either)) + _RESOLUTION * within
        lacking = max(0.0, 1 - here.degrees / _ENOUGH_DEGREES)
        return pool([here, Variance(level, lacking * max(_ASSUMED_DEGREES, starts * _DEGREES_OF_A_START))])


def _between(
    sides: tuple[_Side, _Side],
    values: tuple[Sample, Sample],
    known: _Known,
    matched: float,
    base_runs: int,
    *,
    is_interleaved: bool,
) -> Variance:
    """Variance of the shift due to differences between equal starts and, at different times, between equal runs.

    Starts are nested in runs: more starts reduce their own share, not that of the runs, and starts of several runs
    (`base_runs`) differ by more. `matched` is the factor by which matching reduced the variation of the values.
    """
    head, base = sides
    counts = [np.unique(side.blocks).size for side in sides]
    if 0 in counts:
        return UNKNOWN
    if is_interleaved:
        seen = [variance_between_paired_starts(*values, (head.pairs, base.pairs), inflation=matched)]
    else:
        # The effect of a question is in both versions, so that their variances are not independent estimates.
        of_one_run = [*zip(values, sides, strict=True)][: 2 if base_runs == 1 else 1]
        found = [variance_between_starts(each, side.blocks) for each, side in of_one_run]
        seen = [Variance(each.value * matched, each.degrees / matched) for each in found]
    within = matched * _spread(values) ** 2
    by_runs = 1 + 1 / base_runs
    of_starts, by_counts = pool([*seen, known.starts(within)]), 1 / counts[0] + 1 / counts[1]
    usual = known.beforehand(within)
    if not is_interleaved and usual is not None:
        # Runs include the usual variance of starts; only the excess of these starts is added.
        beyond = Variance(max(of_starts.value - usual.starts.value, 0.0), of_starts.degrees)
        return known.runs(within) * by_runs + beyond * by_counts
    by_starts = of_starts * by_counts
    return by_starts if is_interleaved else by_starts + known.assumed_runs(seen, within, sum(counts)) * by_runs


def _spread(samples: tuple[Sample, Sample]) -> float:
    return adjust.group_scale([values[np.isfinite(values)] for values in samples])


def _median(values: Sample) -> float:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if finite.size else math.inf
