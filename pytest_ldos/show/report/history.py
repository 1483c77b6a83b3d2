"""Trends and stored baselines for a terminal, trends for programs, and origins of commits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.series import Better
from pytest_ldos.base.text import Rendered, counted, format_quantity, format_ratio, percent
from pytest_ldos.host.checkout import ABBREVIATION
from pytest_ldos.judge.baseline.key import KEY_COLUMNS
from pytest_ldos.judge.baseline.series import Change, MetricSeries
from pytest_ldos.judge.baseline.store import StoredBaseline
from pytest_ldos.judge.baseline.trend import PIN, ROLLING, START, CommitPoint, Trend
from pytest_ldos.measure.trial.artifacts import read_trials
from pytest_ldos.show.page import model as page
from pytest_ldos.show.page.formats import Format, finite, render, to_csv, to_json
from pytest_ldos.show.page.terminal import NARROWEST
from pytest_ldos.show.report.sentences import describe_accepted, describe_place

_ROWS: Final = 11
_MARGIN: Final = 12
_GAP: Final = 2


def plot_as_text(trend: Trend, shown: Sequence[CommitPoint], *, width: int) -> list[str]:
    """Plot as lines of at most `width` columns; none if fewer than two commits have a value.

    ``o`` a commit, ``C`` one at which the level changes, ``!`` one with creep. The scale includes all locations and the
    anchor; wide intervals may be cut.
    """
    room = width - _MARGIN - _GAP
    points = [point for point in shown if math.isfinite(point.location)][-room:]
    if len(points) < 2:
        return []
    values = [*(point.location for point in points), *([] if trend.anchor is None else [trend.anchor])]
    low, high = min(values), max(values)
    edge = 0.15 * (high - low) or 0.01 * abs(high) or 1.0
    low, high = low - edge, high + edge

    def row_of(value: float) -> int:
        return round((high - value) / (high - low) * (_ROWS - 1))

    pitch = min(4, room // len(points))
    grid = [[" "] * (len(points) * pitch) for _ in range(_ROWS)]
    if trend.anchor is not None:
        grid[row_of(trend.anchor)] = list(("-" + " " * (pitch - 1)) * len(points))
    for column, point in zip(range(0, len(points) * pitch, pitch), points, strict=True):
        if math.isfinite(point.low) and math.isfinite(point.high):
            for row in range(max(0, row_of(point.high)), min(_ROWS - 1, row_of(point.low)) + 1):
                grid[row][column] = "|"
        grid[row_of(point.location)][column] = "C" if point.change_point else "!" if point.creeps else "o"
    labels = {0: high, _ROWS // 2: (high + low) / 2, _ROWS - 1: low}
    lines = [
        f"{format_quantity(labels[row], trend.series.unit) if row in labels else '':>{_MARGIN}} |{''.join(cells)}"
        for row, cells in enumerate(grid)
    ]
    legend = "o commit  | interval  - anchor  C level changes  ! creep"
    return [*(line.rstrip() for line in lines), f"{'':>{_MARGIN + _GAP}}{legend}"]


_SINCE: Final = tuple(f"since {anchor}" for anchor in (PIN, START))
_RANKS: Final = (("n", 8), ("median", 10), ("location", 1), ("interval", 7), ("step", 2), ("interval", 6))
_COMMITS: Final = (
    page.Column("commit", page.Kind.WORD),
    page.Column("date", page.Kind.WORD, rank=9),
    *(page.Column(title, rank=rank) for title, rank in (*_RANKS, *((each, 3) for each in _SINCE), ("rolling", 5))),
    page.Column("", page.Kind.WORD, rank=4),
)
OVERVIEW: Final = (*page.names("scenario", "metric"), *page.numbers("runs", "now", *_SINCE, "rolling"), *page.names(""))

_LABEL: Final = 13


def render_overview(trends: Sequence[Trend], *, width: int, color: bool) -> Rendered:
    sections = []
    for place in sorted({each.series.key.place for each in trends}):
        rows = tuple(overview_row(each) for each in trends if each.series.key.place == place)
        sections.append(page.Section(describe_place(place), (page.Table(columns=OVERVIEW, rows=rows),)))
    return render(page.Page(title="", blocks=tuple(sections)), Format.TERMINAL, width=width, color=color)


def render_trend(trend: Trend, *, shown: Sequence[CommitPoint], width: int, color: bool) -> Rendered:
    plot = plot_as_text(trend, shown, width=max(width, NARROWEST))
    whole = page.Page(
        title=describe(trend.series),
        blocks=(
            page.Table(columns=_COMMITS, rows=tuple(_row(trend, point) for point in shown)),
            page.Section("", tuple(page.Text(each, is_whole=True) for each in plot)),
            page.Bullets(tuple(describe_anchors(trend)), page.Tone.QUIET),
        ),
    )
    return render(whole, Format.TERMINAL, width=width, color=color)


def describe(series: MetricSeries) -> str:
    return f"{name_of(series)}: {counted(len(series.runs), 'run')}, {series.better} is better"


def name_of(series: MetricSeries) -> str:
    return f"{series.metric} {series.title} of '{series.key.scenario}'"


def describe_anchors(trend: Trend) -> Iterator[str]:
    unit = trend.series.unit
    yield describe_place(trend.series.key) + (f", from {trend.series.source}" if trend.series.source else "")
    if trend.anchor is not None:
        name = f"pinned anchor: {trend.pinned}" if trend.pinned else "nothing is pinned; anchor: the first runs"
        yield f"{name}, {format_quantity(trend.anchor, unit)}"
    if trend.rolling is not None:
        yield f"rolling anchor: last {trend.window} accepted runs, {format_quantity(trend.rolling, unit)}"
    if trend.run_deviation is not None:
        yield (
            f"runs of one level differ by {percent(trend.run_deviation)} (neighbours correlate by "
            f"{trend.correlation:.2f}); a single step is reported from {percent(trend.floor)} on"
        )
    yield from trend.notes


def describe_marks(trend: Trend, point: CommitPoint) -> list[str]:
    marks = ["pinned"] if trend.is_pinned(point) else []
    if point.change_point:
        marks.append("level changes")
    if point.creeps:
        marks.append(f"creep: {' and '.join(point.creeps)}")
    if point.accepted:
        marks.append(describe_accepted(point.accepted))
    marks += sorted({run.verdict for run in point.runs if not run.is_accepted and run.verdict})
    if point.failed:
        marks.append(f"{point.failed} failed")
    return marks


def overview_row(trend: Trend) -> tuple[page.Cell, ...]:
    last, series = trend.commits[-1], trend.series
    changes = [point for point in trend.commits if point.change_point]
    marks = [f"level changed at {_short(changes[-1].label)}"] if changes else []
    if last.creeps:
        marks.append(f"creep: {' and '.join(last.creeps)}")
    return (
        series.key.scenario,
        series.metric,
        str(len(series.runs)),
        _quantity(last.location, series.unit),
        *_since_anchor(trend, last),
        show_change(trend, last.from_rolling),
        page.Words(", ".join(marks), page.Tone.DOUBT),
    )


def _row(trend: Trend, point: CommitPoint) -> tuple[page.Cell, ...]:
    unit = trend.series.unit
    is_bounded = math.isfinite(point.low) and math.isfinite(point.high)
    return (
        _short(point.label),
        f"{point.runs[0].started_at:%Y-%m-%d}",
        str(point.count),
        _quantity(point.median, unit),
        _quantity(point.location, unit),
        f"{format_quantity(point.low, '')} … {format_quantity(point.high, unit)}" if is_bounded else "",
        show_change(trend, point.step),
        describe_interval(point.step),
        *_since_anchor(trend, point),
        show_change(trend, point.from_rolling),
        page.Words(", ".join(describe_marks(trend, point)), page.Tone.DOUBT),
    )


def _quantity(value: float, unit: str) -> str:
    return format_quantity(value, unit) if math.isfinite(value) else "failed"


def describe_interval(change: Change | None) -> str:
    if change is None or not math.isfinite(change.low) or not math.isfinite(change.high):
        return ""
    return f"{format_ratio(1 + change.low).removesuffix(' %')} … {format_ratio(1 + change.high)}"


def show_change(trend: Trend, change: Change | None) -> page.Words:
    """A change, coloured if it exceeds the floor and its interval excludes zero."""
    if change is None:
        return page.Words("")
    sign = 1 if trend.series.better is Better.LOWER else -1
    is_clear = abs(change.effect) > trend.floor and change.low * change.high > 0
    tone = (page.Tone.BAD if sign * change.effect > 0 else page.Tone.GOOD) if is_clear else page.Tone.PLAIN
    return page.Words(format_ratio(1 + change.effect), tone)


def _since_anchor(trend: Trend, point: CommitPoint) -> tuple[page.Words, page.Words]:
    """Changes since the pinned commit and since the first runs; one of them is empty."""
    change = show_change(trend, point.from_anchor)
    return (change, page.Words("")) if trend.pinned else (page.Words(""), change)


def _short(label: str) -> str:
    return label if len(label) <= _LABEL or "-" in label else label[:_LABEL]


Shown = Sequence[tuple[Trend, Sequence[CommitPoint]]]  # trends, each with its requested commits
_COLUMNS: Final = (
    *KEY_COLUMNS, "metric", "unit", "commit", "branch", "first_run_at", "runs", "trials", "failed",
    "verdicts", "median", "location", "low", "high", "step", "step_low", "step_high", "from_pin", "from_pin_low",
    "from_pin_high", "from_start", "from_start_low", "from_start_high", "from_rolling", "from_rolling_low",
    "from_rolling_high", "change_point", "creep_since_pin", "creep_since_start", "creep_since_rolling", "accepted",
)  # fmt: skip


def render_json(shown: Shown) -> Rendered:
    """One object per series; changes are relative, and infinite or unknown numbers are null."""
    series = [_series(trend, points) for trend, points in shown]
    return to_json({"kind": "pytest-ldos history trends", "schema": 2, "series": series})


def render_csv(shown: Shown) -> Rendered:
    rows = []
    for trend, points in shown:
        series = {**vars(trend.series.key), "metric": trend.series.metric, "unit": trend.series.unit}
        for commit in (_commit(trend, point) for point in points):
            row = {**series, **commit, "verdicts": " ".join(commit["verdicts"])}
            rows.append([row[name] for name in _COLUMNS])
    return to_csv(_COLUMNS, rows)


def _series(trend: Trend, points: Sequence[CommitPoint]) -> dict[str, Any]:
    series = trend.series
    return {
        **vars(series.key),
        **{name: getattr(series, name) for name in ("metric", "title", "unit", "better", "source")},
        "runs": len(series.runs),
        "pinned": trend.pinned or None,
        "anchor": finite(trend.anchor),
        "rolling_anchor": finite(trend.rolling),
        "rolling_window": trend.window,
        "floor": trend.floor,
        "run_deviation": finite(trend.run_deviation),
        "correlation": trend.correlation,
        "notes": list(trend.notes),
        "commits": [_commit(trend, point) for point in points],
    }


def _commit(trend: Trend, point: CommitPoint) -> dict[str, Any]:
    """A commit's numbers; those since the pinned commit or those since the first runs are null."""
    since = {anchor: point.from_anchor if trend.anchor_name == anchor else None for anchor in (PIN, START)}
    return {
        "commit": point.label,
        "branch": point.runs[0].branch,
        "first_run_at": point.runs[0].started_at.isoformat(),
        "runs": len(point.runs),
        "trials": point.count,
        "failed": point.failed,
        "verdicts": [run.verdict for run in point.runs],
        **{name: finite(getattr(point, name)) for name in ("median", "location", "low", "high")},
        **dict(_bounds("step", point.step)),
        **{name: value for each, change in since.items() for name, value in _bounds(f"from_{each}", change)},
        **dict(_bounds("from_rolling", point.from_rolling)),
        "change_point": bool(point.change_point),
        **{f"creep_since_{each}": each in point.creeps for each in (PIN, START, ROLLING)},
        "accepted": describe_accepted(point.accepted) if point.accepted else None,
    }


def _bounds(name: str, change: Change | None) -> Iterator[tuple[str, float | None]]:
    for ending, part in (("", "effect"), ("_low", "low"), ("_high", "high")):
        yield f"{name}{ending}", None if change is None else finite(getattr(change, part))


_COMMIT: Final = re.compile(rf"[0-9a-f]{{{ABBREVIATION},40}}")
_OF_SUBJECT: Final = re.compile(r"\(#([1-9]\d{0,8})\)\Z|\AMerge pull request #([1-9]\d{0,8}) ", re.ASCII)
"""Subject of a squashed or merged pull request."""

_OF_BRANCH: Final = re.compile(r"gh-readonly-queue/.+/pr-([1-9]\d{0,8})-[0-9a-f]+()", re.ASCII)
"""Branch of a merge queue."""


@dataclass(frozen=True)
class Origins:
    """Addresses and subjects of commits, the latter by abbreviation; without the `url` of the repository, no links.

    Raises `ConfigurationError` if `url` is not an address.
    """

    url: str = ""
    subjects: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.url:
            object.__setattr__(self, "url", page.Link("", self.url.rstrip("/")).url)

    def subject(self, commit: str) -> str:
        """The first line of the commit's message; empty if unknown."""
        return self.subjects.get(commit[:ABBREVIATION], "") if _COMMIT.fullmatch(commit) else ""

    def commit_url(self, commit: str) -> str:
        """The address of a commit; empty if it has none."""
        return f"{self.url}/commit/{commit}" if self.url and _COMMIT.fullmatch(commit) else ""

    def pull_request(self, point: CommitPoint) -> page.Link | None:
        """The pull request of a commit, from its subject or the branch of its merge queue."""
        of_subject = _OF_SUBJECT.search(self.subject(point.commit))
        found = (of_subject, *(_OF_BRANCH.fullmatch(run.branch) for run in point.runs))
        number = next((match[1] or match[2] for match in found if match), "")
        return page.Link(f"#{number}", f"{self.url}/pull/{number}") if number and self.url else None


def render_baselines(stored: Sequence[StoredBaseline], *, width: int, color: bool) -> Rendered:
    trials, run = page.numbers("trials"), page.words("recorded", "commit")
    columns = (*page.names("scenario"), *page.words("where"), *trials, *run, *page.names("machine"))
    sections = []
    for place in dict.fromkeys(each.key.place for each in stored):
        rows = tuple(_baseline_row(each) for each in stored if each.key.place == place)
        sections.append(page.Section(describe_place(place), (page.Table(columns=columns, rows=rows),)))
    return render(page.Page(title="", blocks=tuple(sections)), Format.TERMINAL, width=width, color=color)


def _baseline_row(baseline: StoredBaseline) -> tuple[str, ...]:
    where = "local" if baseline.is_local else "repository"
    name = f"{baseline.key.scenario} (pinned)" if baseline.is_pinned else baseline.key.scenario
    try:
        trials = read_trials(baseline.file)
    except RecordUnreadable:
        return name, where, "unreadable", "", "", ""
    recorded = (str(len(trials.trials)), trials.started_at[:10], trials.commit[:12], trials.fingerprint.hostname)
    return name, where, *recorded
