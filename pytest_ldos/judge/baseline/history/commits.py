"""Summarises a metric by commit, compared with the commit before and with the anchors."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_ldos.host.checkout import is_changed
from pytest_ldos.judge.baseline.history.levels import AcceptedRuns, Change, Level, Noise, bounds, change_between
from pytest_ldos.judge.baseline.history.series import MetricSeries, Run


@dataclass(frozen=True, kw_only=True)
class CommitPoint:
    """One metric over the runs of one commit.

    Attributes:
        label: the commit, or the run's name outside of git or with uncommitted changes.
        first, last: places of its first and its last run among all of the series.
        median: of the runs' medians, as measured.
        location, low, high: after covariates, in the metric's unit, with the interval.
        step: from the commit before; ``None`` for the first.
        from_anchor: from the pinned anchor, or where nothing is pinned from the first runs.
        from_rolling: from the rolling anchor as it was before this commit.
        change_point: strength of a change of level that begins here; 0 where none does.
        creeps: names of the anchors that the level has crept away from by now (see `creep`).
    """

    label: str
    commit: str
    runs: tuple[Run, ...]
    median: float
    location: float
    low: float
    high: float
    step: Change | None
    from_anchor: Change | None
    from_rolling: Change | None
    first: int
    last: int
    change_point: float = 0.0
    creeps: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return sum(run.count for run in self.runs)

    @property
    def failed(self) -> int:
        return sum(run.failed for run in self.runs)


def build_commits(series: MetricSeries, noise: Noise, *, anchor: Level | None, window: int) -> Iterator[CommitPoint]:
    """The commits of a series in the order of their first runs.

    Args:
        anchor: the pinned one, or the first runs.
        window: accepted runs that make the rolling anchor.
    """
    before: Level | None = None
    accepted = AcceptedRuns.of(series)
    for label, places in _by_commit(series.runs):
        runs = tuple(series.runs[place] for place in places)
        level = noise.level(runs)
        rolling = noise.level(accepted.before(places[0], window))
        low, high = bounds(level)
        yield CommitPoint(
            label=label,
            commit=runs[0].commit,
            runs=runs,
            median=statistics.median(run.median for run in runs),
            location=math.inf if level is None else series.value(level.location),
            low=series.value(low),
            high=series.value(high),
            step=change_between(series, before, level),
            from_anchor=change_between(series, anchor, level),
            from_rolling=change_between(series, rolling, level),
            first=places[0],
            last=places[-1],
        )
        before = level if level is not None else before


def _by_commit(runs: Sequence[Run]) -> Iterator[tuple[str, list[int]]]:
    """Groups the indices of runs by commit, in order of the first run; runs without a clean commit stand alone."""
    groups: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        is_known = run.commit and not is_changed(run.commit)
        groups.setdefault(run.commit if is_known else f"{run.commit}\0{run.trials}", []).append(place)
    for key, places in groups.items():
        yield key.partition("\0")[0] or runs[places[0]].name, places
