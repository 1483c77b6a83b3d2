"""Detects creep: many steps, each too small to be reported, that add up to a relevant change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pytest_ldos.base.series import Better
from pytest_ldos.judge.baseline.history.commits import CommitPoint
from pytest_ldos.judge.baseline.history.levels import AcceptedRuns, Change, Level, Noise, change_between
from pytest_ldos.judge.baseline.history.series import MetricSeries

PIN: Final = "pin"
START: Final = "start"
"""The first runs, where nothing is pinned."""

ROLLING: Final = "rolling"

_RECENT_RUNS: Final = 5
"""Number of runs that the present level is estimated from."""

_TAIL: Final = 0.0001
"""Probability of error at each end of the interval that must exclude zero: a history is tested after every run."""


@dataclass(frozen=True)
class Anchor:
    """Reference level that a history is compared with.

    Attributes:
        name: `PIN` or `START`.
        last: place of its last run.
    """

    name: str
    level: Level | None
    last: int


def find_creep(
    series: MetricSeries,
    commits: Sequence[CommitPoint],
    noise: Noise,
    *,
    anchor: Anchor,
    window: int,
    floor: float,
) -> Iterator[tuple[str, ...]]:
    """Yields, for each commit, the anchors from which the level has crept for the worse by then.

    Args:
        window, floor: see `trend.build_trend`.
    """
    sign = 1.0 if series.better is Better.LOWER else -1.0
    accepted = AcceptedRuns.of(series)
    place = dict(zip((run.trials for run in accepted.runs), accepted.places, strict=True))
    last_jump, before = -1, None
    for commit in commits:
        own = noise.level(commit.runs)
        if _is_worse(change_between(series, before, own, tail=_TAIL), sign, floor):
            last_jump = commit.first
        before = own or before
        recent = accepted.before(commit.last + 1, _RECENT_RUNS)
        begin = place[recent[0].trials] if recent else 0
        rolling = accepted.before(begin, window)
        since_rolling = place[rolling[0].trials] if rolling else begin
        anchors = {anchor.name: (anchor.level, anchor.last), ROLLING: (noise.level(rolling), since_rolling)}
        level = noise.level(recent)
        yield tuple(
            name
            for name, (start, since) in anchors.items()
            if since < begin
            and last_jump <= since
            and _is_worse(change_between(series, start, level, tail=_TAIL), sign, floor)
        )


def _is_worse(change: Change | None, sign: float, floor: float) -> bool:
    """True if a change for the worse exceeds the floor and its interval excludes zero."""
    if change is None:
        return False
    nearest = change.low if sign > 0 else -change.high
    return sign * change.effect > floor and nearest > 0
