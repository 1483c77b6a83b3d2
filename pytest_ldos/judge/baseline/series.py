"""One metric over the runs of one stack, host class and scenario: location and level of each run."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import ndtri, stdtrit

from pytest_ldos.base.series import Better
from pytest_ldos.base.stats.adjust import remove_cause, remove_levels
from pytest_ldos.base.stats.rank_tests import correlation_of, locate, normal_scores
from pytest_ldos.judge.baseline.accepted import Accepted
from pytest_ldos.judge.baseline.history import INVALID, KEPT_COVARIATES, Status
from pytest_ldos.judge.baseline.key import KEY_COLUMNS, BaselineKey

Numbers = npt.NDArray[np.float64]

CONFIDENCE: Final = 0.95
TAIL: Final = (1 - CONFIDENCE) / 2
_DEVIATIONS_OF_HALF_WIDTH: Final = -float(ndtri(TAIL))
_MAD_TO_DEVIATION: Final = 1.4826
_FEWEST_RUNS: Final = 5
"""Fewest runs from which the variation between runs is estimated."""

_REFUSED: Final = frozenset({"regressed", "infra"})

COLUMNS: Final = frozenset(
    {
        "trials", "run", "started_at", "commit", "branch", *KEY_COLUMNS, "version", "verdict",
        "metric", "title", "unit", "better", "adjust_for", "adjust_where_alike", "goal", "status", "value", "source",
        *KEPT_COVARIATES,
    }
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Run:
    """One set of trials."""

    trials: str
    name: str
    started_at: datetime
    commit: str
    branch: str
    version: str
    verdict: str
    count: int  # number of trials with a value of the metric, including failed (censored) ones
    failed: int
    median: float  # median of the measured values without adjustment; infinite if there are none
    location: float  # Hodges–Lehmann estimate after covariates, on the series' scale; infinite if most trials failed
    half_width: float  # half width of the location's interval from its trials alone; infinite if they are too few
    brought: Accepted | None = None  # the accepted change for the worse that its commit brought, if it did

    @property
    def is_accepted(self) -> bool:
        return self.verdict not in _REFUSED and math.isfinite(self.location)


@dataclass(frozen=True, kw_only=True)
class MetricSeries:
    """A metric over runs, in chronological order."""

    key: BaselineKey
    metric: str
    title: str
    unit: str
    better: Better
    source: str  # where the values were taken from; each source has its own series
    scale: float  # relative effect of a difference of one between locations; 0 on logarithms
    runs: tuple[Run, ...]

    def effect(self, difference: float) -> float:
        """Converts a difference of locations to a relative change; an infinite difference stays infinite."""
        if not math.isfinite(difference):
            return difference
        return math.expm1(difference) if self.scale == 0.0 else difference * self.scale

    def value(self, location: float) -> float:
        return math.exp(location) if self.scale == 0.0 and math.isfinite(location) else location


_OF_METRIC: Final = (*KEY_COLUMNS, "metric")


def latest_runs(rows: pl.DataFrame, count: int, *, keep: Collection[str] = ()) -> pl.DataFrame:
    """The rows of the last `count` runs of each key, and of the sets of trials and commits in `keep`."""
    sets = rows.select("trials", "started_at", "commit", *KEY_COLUMNS).unique()
    age = pl.struct("started_at", "trials").rank("ordinal", descending=True).over(KEY_COLUMNS)
    kept = sets.filter((age <= count) | pl.col("trials").is_in(keep) | pl.col("commit").is_in(keep))
    return rows.join(kept.select("trials"), on="trials", how="semi")


def build_series(rows: pl.DataFrame) -> list[MetricSeries]:
    """All series in a history's rows with at least one usable value; invalid runs have none."""
    has_value = pl.col("status").is_in([Status.MEASURED.value, Status.CENSORED.value])
    usable = rows.filter(has_value & (pl.col("verdict") != INVALID)).sort("started_at", "trials")
    # Censored values get the source of their run's other values, or of a neighbouring run.
    of_run = pl.col("source").drop_nulls().first().over("trials", "metric")
    filled = usable.with_columns(pl.coalesce("source", of_run).alias("source"))
    ordered = filled.with_columns(pl.col("source").forward_fill().backward_fill().over(_OF_METRIC))
    groups = ordered.partition_by(*_OF_METRIC, "source", maintain_order=True)
    found = [_build(group) for group in groups if group["value"].is_not_null().any()]
    return sorted(found, key=lambda series: (series.key, series.metric, series.source))


def _build(rows: pl.DataFrame) -> MetricSeries:
    first = rows.row(-1, named=True)
    groups = rows["trials"].rle_id().to_numpy().astype(np.int64)
    raw = rows["value"].fill_null(math.inf).to_numpy()
    on_logs = bool(np.all(raw > 0))
    scale = 0.0 if on_logs else 1 / max(abs(float(np.median(raw[np.isfinite(raw)]))), 1e-9)
    values = _log(raw) if on_logs else raw
    for column in ("adjust_for", "adjust_where_alike"):
        for covariate in first[column] or ():
            cause = rows[covariate].cast(pl.Float64).fill_null(math.nan).to_numpy()
            cause = _log(cause) if on_logs else cause
            values = remove_cause(values, cause, groups, within=column == "adjust_where_alike")
    values = remove_levels(values, rows["goal"].rank("dense").to_numpy().astype(np.int64))
    return MetricSeries(
        key=BaselineKey.of_row(first),
        metric=first["metric"],
        title=first["title"],
        unit=first["unit"],
        better=Better(first["better"]),
        source=first["source"] or "",
        scale=scale,
        runs=tuple(_runs(rows, groups, raw, values)),
    )


def _runs(rows: pl.DataFrame, groups: Numbers | Any, raw: Numbers, values: Numbers) -> Iterator[Run]:
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    ends = np.append(starts[1:], len(groups))
    locations, half_widths = _locate(values, starts, ends)
    medians, failed = _medians(raw, starts, ends)
    described = rows.select("trials", "run", "started_at", "commit", "branch", "version", "verdict")[starts.tolist()]
    for i, about in enumerate(described.iter_rows(named=True)):
        yield Run(
            name=about.pop("run"),
            **about,
            count=int(ends[i] - starts[i]),
            failed=int(failed[i]),
            median=float(medians[i]),
            location=float(locations[i]),
            half_width=float(half_widths[i]),
        )


def _medians(raw: Numbers, starts: Any, ends: Any) -> tuple[Numbers, Numbers]:
    """Median of the finite values of each run (infinite if there are none), and the number of infinite values."""
    failed = np.add.reduceat(~np.isfinite(raw), starts, dtype=np.int64)
    medians = np.full(len(starts), np.inf)
    for size in np.unique(ends - starts):
        whole = np.flatnonzero((ends - starts == size) & (failed == 0))
        medians[whole] = np.median(raw[starts[whole, None] + np.arange(size)], axis=1)
    for i in np.flatnonzero((failed > 0) & (failed < ends - starts)):
        own = raw[starts[i] : ends[i]]
        medians[i] = np.median(own[np.isfinite(own)])
    return medians, failed


def _locate(values: Numbers, starts: Any, ends: Any) -> tuple[Numbers, Numbers]:
    """Location and half width of each run of values; runs of equal length are computed together."""
    sizes = ends - starts
    locations, half_widths = np.empty(len(starts)), np.empty(len(starts))
    for size in np.unique(sizes):
        of_size = np.flatnonzero(sizes == size)
        found = locate(values[starts[of_size, None] + np.arange(size)], tail=TAIL)
        locations[of_size] = found.estimate
        with np.errstate(invalid="ignore"):
            both, lower = (found.high - found.low) / 2, found.estimate - found.low
        widths = np.where(np.isfinite(found.high), both, lower)  # failed trials make the upper end infinite
        half_widths[of_size] = np.where(np.isnan(widths), np.inf, widths)
    return locations, half_widths


def _log(values: Numbers) -> Numbers:
    with np.errstate(divide="ignore", invalid="ignore"):
        logs: Numbers = np.log(values)
    return logs


@dataclass(frozen=True)
class Change:
    """A relative change with its interval; 0.1 is 10 % more."""

    effect: float
    low: float
    high: float


@dataclass(frozen=True)
class Level:
    """A location with its standard deviation, and the degrees of freedom of the latter."""

    location: float
    deviation: float
    degrees: float


@dataclass(frozen=True)
class Noise:
    """Variation between runs of an unchanged level; the standard deviation is 0 if too few runs estimate it."""

    deviation: float
    degrees: float
    correlation: float
    is_estimated: bool = True

    def level(self, runs: Sequence[Run]) -> Level | None:
        """The common level of some neighbouring runs; ``None`` if none of them has a finite location."""
        if not (known := [run for run in runs if math.isfinite(run.location)]):
            return None
        middle = statistics.median([run.location for run in known])
        own = sum((run.half_width / _DEVIATIONS_OF_HALF_WIDTH) ** 2 for run in known) / len(known)
        shared = (1 + self.correlation) / (1 - self.correlation)
        variance = max(own, self.deviation**2) * min(1.0, shared / len(known))
        return Level(middle, math.sqrt(variance), self.degrees if self.deviation**2 >= own else math.inf)


def noise_of(series: MetricSeries) -> Noise:
    """Noise estimated from differences of neighbouring runs, which is robust to a few changes of level."""
    locations = np.array([run.location for run in series.runs if run.is_accepted])
    if len(locations) < _FEWEST_RUNS:
        return Noise(0.0, math.inf, 0.0, is_estimated=False)
    steps = np.diff(locations)
    between = _MAD_TO_DEVIATION * float(np.median(np.abs(steps - np.median(steps)))) / math.sqrt(2)
    correlation = 0.0
    if len(locations) >= 2 * _FEWEST_RUNS:
        correlation = min(max(float(correlation_of(normal_scores(locations))), 0.0), 0.9)
    return Noise(between / math.sqrt(1 - correlation), max(2.0, len(steps) / 3), correlation)


@dataclass(frozen=True)
class AcceptedRuns:
    """The runs of a series that may serve as an anchor, with their increasing indices among all runs."""

    runs: tuple[Run, ...]
    places: tuple[int, ...]

    @classmethod
    def of(cls, series: MetricSeries) -> AcceptedRuns:
        kept = [(run, place) for place, run in enumerate(series.runs) if run.is_accepted]
        return cls(tuple(run for run, _ in kept), tuple(place for _, place in kept))

    def before(self, place: int, count: int) -> tuple[Run, ...]:
        end = bisect_left(self.places, place)
        return self.runs[max(0, end - count) : end]


def bounds(level: Level | None) -> tuple[float, float]:
    if level is None:
        return math.inf, math.inf
    half = level.deviation * -_quantile(TAIL, level.degrees)
    return level.location - half, level.location + half


def change_between(
    series: MetricSeries, before: Level | None, after: Level | None, *, tail: float = TAIL
) -> Change | None:
    if before is None or after is None:
        return None
    difference = after.location - before.location
    deviation = math.hypot(before.deviation, after.deviation)
    half = deviation * -_quantile(tail, min(before.degrees, after.degrees))
    low, high = (series.effect(bound) for bound in (difference - half, difference + half))
    return Change(series.effect(difference), low, high)


def _quantile(tail: float, degrees: float) -> float:
    return float(ndtri(tail) if math.isinf(degrees) else stdtrit(degrees, tail))
