"""A series over commits: steps, accumulated changes, change points and creep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from pytest_ldos.base.stats.change_points import find_change_points
from pytest_ldos.judge.baseline.history.anchors import Pin
from pytest_ldos.judge.baseline.history.commits import CommitPoint, build_commits
from pytest_ldos.judge.baseline.history.creep import PIN, START, Anchor, find_creep
from pytest_ldos.judge.baseline.history.levels import AcceptedRuns, Noise, noise_of
from pytest_ldos.judge.baseline.history.series import MetricSeries, Run
from pytest_ldos.measure.metrics.model import USUAL_FLOOR

ROLLING_WINDOW: Final = 10
"""Default number of accepted runs in the rolling anchor."""

_START_RUNS: Final = 5


@dataclass(frozen=True, kw_only=True)
class Trend:
    """A metric over commits.

    Attributes:
        pinned: what the pinned anchor is; empty where nothing is pinned, and the first runs stand for it.
        pinned_trials: sets of trials that are pinned.
        anchor, rolling: the anchors now, in the metric's unit; ``None`` where there is none.
        window: accepted runs that make the rolling anchor.
        floor: relative effect below which a single step is not reported.
        run_deviation: relative standard deviation between runs of an unchanged level; ``None`` for too few runs.
        correlation: correlation of neighbouring runs.
    """

    series: MetricSeries
    commits: tuple[CommitPoint, ...]
    pinned: str
    anchor: float | None
    rolling: float | None
    window: int
    floor: float
    run_deviation: float | None
    correlation: float
    pinned_trials: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    def is_pinned(self, point: CommitPoint) -> bool:
        """True if a run of the commit is pinned."""
        return any(run.trials in self.pinned_trials for run in point.runs)

    @property
    def anchor_name(self) -> str:
        """`PIN`, or `START` where nothing is pinned."""
        return PIN if self.pinned else START


def build_trend(
    series: MetricSeries, *, pin: Pin | None = None, window: int = ROLLING_WINDOW, floor: float = USUAL_FLOOR
) -> Trend:
    """Builds the trend of a series.

    Args:
        window, floor: see `Trend`.
    """
    noise = noise_of(series)
    accepted = AcceptedRuns.of(series)
    pinned = _pinned_runs(series, pin)
    start = pinned or accepted.runs[: min(window, _START_RUNS)]
    anchor = noise.level(start)
    commits = tuple(build_commits(series, noise, anchor=anchor, window=window))
    measured_by = Anchor(PIN if pinned else START, anchor, _last_place(series, start))
    creeps = find_creep(series, commits, noise, anchor=measured_by, window=window, floor=floor)
    strengths = _change_points(series)
    rolling = noise.level(accepted.runs[-window:])
    return Trend(
        series=series,
        commits=tuple(
            replace(commit, creeps=names, change_point=max(strengths.get(run.trials, 0.0) for run in commit.runs))
            for commit, names in zip(commits, creeps, strict=True)
        ),
        pinned=pin.name if pin and pinned else "",
        anchor=None if anchor is None else series.value(anchor.location),
        rolling=None if rolling is None else series.value(rolling.location),
        window=window,
        floor=floor,
        run_deviation=abs(series.effect(noise.deviation)) if noise.is_estimated else None,
        correlation=noise.correlation,
        pinned_trials=frozenset(run.trials for run in pinned),
        notes=tuple(_notes(series, pin, pinned, noise)),
    )


def _pinned_runs(series: MetricSeries, pin: Pin | None) -> list[Run]:
    if pin is None:
        return []
    return [run for run in series.runs if (run.commit == pin.commit if pin.commit else run.trials == pin.trials)]


def _last_place(series: MetricSeries, runs: Sequence[Run]) -> int:
    wanted = {run.trials for run in runs}
    return max((place for place, run in enumerate(series.runs) if run.trials in wanted), default=-1)


def _change_points(series: MetricSeries) -> dict[str, float]:
    """Strength by the first run of the new level; found on runs, not on trials."""
    found = find_change_points(np.array([run.location for run in series.runs]))
    return {series.runs[point.index].trials: point.strength for point in found}


def _notes(series: MetricSeries, pin: Pin | None, pinned: Sequence[Run], noise: Noise) -> Iterator[str]:
    if pin is not None and not pinned:
        yield f"'{pin.name}' is pinned, but has no run here; the first runs stand for it"
    if not noise.is_estimated:
        yield "fewer than five runs: intervals tell how much trials differ, not yet how much runs do"
    if any(not run.commit for run in series.runs):
        yield "runs without a commit (outside of git) stand for themselves, by the name of their folder"
