"""Values that summarize a run: location and variation of each metric, kept deadlines, the overall score."""

from __future__ import annotations

from dataclasses import dataclass


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
