"""A series over commits: steps, accumulated changes, change points and creep."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.files import RecordFormat, read_plain, write_atomically
from pytest_ldos.base.series import Better
from pytest_ldos.base.stats.rank_tests import find_change_points
from pytest_ldos.host.checkout import is_changed
from pytest_ldos.judge.baseline.accepted import Accepted
from pytest_ldos.judge.baseline.history import SCHEMA_VERSION
from pytest_ldos.judge.baseline.series import (
    AcceptedRuns,
    Change,
    Level,
    MetricSeries,
    Noise,
    Run,
    bounds,
    change_between,
    noise_of,
)
from pytest_ldos.measure.metrics.model import USUAL_FLOOR


@dataclass(frozen=True, kw_only=True)
class CommitPoint:
    """One metric over the runs of one commit.

    Attributes:
        label: the commit, or the run's name outside of git or with uncommitted changes.
        first, last: indices of its runs in the series.
        median: of the runs' medians, as measured.
        location, low, high: after covariates, in the metric's unit, with the interval.
        step: from the commit before; ``None`` for the first.
        from_anchor: from the pinned anchor, or from the first runs if nothing is pinned.
        from_rolling: from the rolling anchor as it was before this commit.
        change_point: strength of a change of level that begins here; 0 if there is none.
        creeps: names of the anchors that the level has crept away from so far.
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

    @property
    def accepted(self) -> Accepted | None:
        return next((run.brought for run in self.runs if run.brought), None)


def _build_commits(series: MetricSeries, noise: Noise, *, anchor: Level | None, window: int) -> Iterator[CommitPoint]:
    """The commits of a series in the order of their first runs; runs without a clean commit stand alone."""
    groups: dict[str, list[int]] = {}
    for place, run in enumerate(series.runs):
        is_known = run.commit and not is_changed(run.commit)
        groups.setdefault(run.commit if is_known else f"{run.commit}\0{run.trials}", []).append(place)
    before: Level | None = None
    accepted = AcceptedRuns.of(series)
    for key, places in groups.items():
        runs = tuple(series.runs[place] for place in places)
        level = noise.level(runs)
        low, high = bounds(level)
        yield CommitPoint(
            label=key.partition("\0")[0] or runs[0].name,
            commit=runs[0].commit,
            runs=runs,
            median=statistics.median(run.median for run in runs),
            location=math.inf if level is None else series.value(level.location),
            low=series.value(low),
            high=series.value(high),
            step=change_between(series, before, level),
            from_anchor=change_between(series, anchor, level),
            from_rolling=change_between(series, noise.level(accepted.before(places[0], window)), level),
            first=places[0],
            last=places[-1],
        )
        before = level if level is not None else before


PIN: Final = "pin"
START: Final = "start"
"""Name of the anchor made of the first runs, or those since an accepted change, used if nothing is pinned."""

ROLLING: Final = "rolling"

_RECENT_RUNS: Final = 5

_TAIL: Final = 0.0001
"""Probability of error at each end of the interval that must exclude zero: a history is tested after every run."""


def _find_creep(
    series: MetricSeries,
    commits: Sequence[CommitPoint],
    noise: Noise,
    *,
    anchor: tuple[str, Level | None, int],
    window: int,
    floor: float,
) -> Iterator[tuple[str, ...]]:
    """Yields, for each commit, the anchors from which the level has crept for the worse by then.

    `anchor` is the first one: its name, its level, and the index of its last run.
    """
    sign = 1.0 if series.better is Better.LOWER else -1.0
    accepted = AcceptedRuns.of(series)
    place = dict(zip((run.trials for run in accepted.runs), accepted.places, strict=True))
    last_jump, before = -1, None
    for commit in commits:
        own = noise.level(commit.runs)
        if commit.accepted or _is_worse(change_between(series, before, own, tail=_TAIL), sign, floor):
            last_jump = commit.first
        before = own or before
        recent = accepted.before(commit.last + 1, _RECENT_RUNS)
        begin = place[recent[0].trials] if recent else 0
        rolling = accepted.before(begin, window)
        since_rolling = place[rolling[0].trials] if rolling else begin
        anchors = (anchor, (ROLLING, noise.level(rolling), since_rolling))
        level = noise.level(recent)
        yield tuple(
            name
            for name, start, since in anchors
            if since < begin
            and last_jump <= since
            and _is_worse(change_between(series, start, level, tail=_TAIL), sign, floor)
        )


def _is_worse(change: Change | None, sign: float, floor: float) -> bool:
    """True if a change for the worse exceeds the floor and its interval excludes zero."""
    if change is None:
        return False
    return sign * change.effect > floor and (change.low if sign > 0 else -change.high) > 0


ROLLING_WINDOW: Final = 10

_START_RUNS: Final = 5


@dataclass(frozen=True, kw_only=True)
class Trend:
    """A metric over commits.

    Attributes:
        pinned: description of the pinned anchor; empty if nothing is pinned and the first runs are used instead.
        anchor, rolling: the present anchors, in the metric's unit; ``None`` if there is none.
        floor: relative effect below which a single step is not reported.
        run_deviation: relative standard deviation between runs at an unchanged level; ``None`` for too few runs.
        correlation: of neighbouring runs.
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
        return any(run.trials in self.pinned_trials for run in point.runs)

    @property
    def anchor_name(self) -> str:
        return PIN if self.pinned else START


def build_trend(
    series: MetricSeries, *, pin: Pin | None = None, window: int = ROLLING_WINDOW, floor: float = USUAL_FLOOR
) -> Trend:
    noise, runs = noise_of(series), series.runs
    accepted = AcceptedRuns.of(series)
    pinned = []
    if pin is not None:
        pinned = [run for run in runs if (run.commit == pin.commit if pin.commit else run.trials == pin.trials)]
    since = max((run.started_at for run in runs if run.brought), default=runs[0].started_at)
    start = pinned or [run for run in accepted.runs if run.started_at >= since][: min(window, _START_RUNS)]
    anchor = noise.level(start)
    commits = tuple(_build_commits(series, noise, anchor=anchor, window=window))
    last = max((place for place, run in enumerate(runs) if run.trials in {each.trials for each in start}), default=-1)
    measured_by = PIN if pinned else START, anchor, last
    creeps = _find_creep(series, commits, noise, anchor=measured_by, window=window, floor=floor)
    found = find_change_points(np.array([run.location for run in runs]))
    strengths = {runs[point.index].trials: point.strength for point in found}
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


def _notes(series: MetricSeries, pin: Pin | None, pinned: Sequence[Run], noise: Noise) -> Iterator[str]:
    if pin is not None and not pinned:
        yield f"'{pin.name}' is pinned, but has no run here; the first runs are used instead"
    if not noise.is_estimated:
        yield "fewer than five runs: intervals include the variation between trials, but not between runs"
    if any(not run.commit for run in series.runs):
        yield "runs without a commit (outside of git) are named by their folder"


FILE: Final = "pin.json"
_REMEDY: Final = "pin again: ldos history pin COMMIT"
_FORMAT: Final = RecordFormat("pytest-ldos history pin", SCHEMA_VERSION, remedy=_REMEDY, again=_REMEDY)


@dataclass(frozen=True)
class Pin:
    """The pinned anchor of a series, by the user's name: all runs of a commit, or one set of trials."""

    commit: str
    trials: str
    name: str


def write_pin(folder: Path, pin: Pin) -> Path:
    """Pins a series and replaces an earlier pin; for errors see `write_atomically`."""
    file = folder / FILE
    write_atomically(file, _FORMAT.encode(asdict(pin)))
    return file


def remove_pin(folder: Path) -> bool:
    file = folder / FILE
    was_there = file.exists()
    file.unlink(missing_ok=True)
    return was_there


def read_pin(folder: Path) -> Pin | None:
    """The pin of a series, if any; `RecordUnreadable` if the file is damaged or of another version."""
    file = folder / FILE
    try:
        text = file.read_text("utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RecordUnreadable(f"{file} cannot be read: {error.strerror}", remedy=_REMEDY) from None
    pin: Pin = _FORMAT.decode(text, file, lambda values: read_plain(Pin, values, "the pin"))
    return pin
