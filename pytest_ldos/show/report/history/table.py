"""Trends for a terminal: an overview of all series, or the commits of each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from pytest_ldos.base.series import Better
from pytest_ldos.base.text import Rendered
from pytest_ldos.base.units import counted, format_quantity, format_ratio
from pytest_ldos.judge.baseline.history.commits import CommitPoint
from pytest_ldos.judge.baseline.history.creep import PIN, START
from pytest_ldos.judge.baseline.history.levels import Change
from pytest_ldos.judge.baseline.history.series import MetricSeries
from pytest_ldos.judge.baseline.history.trend import Trend
from pytest_ldos.show.page.formats import Format, render
from pytest_ldos.show.page.model import Bullets, Cell, Column, Kind, Page, Section, Table, Text, Tone, Words
from pytest_ldos.show.page.terminal import NARROWEST
from pytest_ldos.show.report.history.text_plot import plot_as_text
from pytest_ldos.show.report.keys import describe_place

_SINCE: Final = tuple(f"since {anchor}" for anchor in (PIN, START))
_COMMITS: Final = (
    Column("commit", Kind.WORD),
    Column("date", Kind.WORD, rank=9),
    Column("n", rank=8),
    Column("median", rank=10),
    Column("location", rank=1),
    Column("interval", rank=7),
    Column("step", rank=2),
    Column("interval", rank=6),
    *(Column(title, rank=3) for title in _SINCE),
    Column("rolling", rank=5),
    Column("", Kind.WORD, rank=4),
)
OVERVIEW: Final = (
    Column("scenario", Kind.NAME),
    Column("metric", Kind.NAME),
    Column("runs"),
    Column("now"),
    *map(Column, _SINCE),
    Column("rolling"),
    Column("", Kind.NAME),
)

_LABEL: Final = 13
_ALL_FAILED: Final = "failed"


def render_overview(trends: Sequence[Trend], *, width: int, color: bool) -> Rendered:
    """One row a series, in a table for each stack and host class."""
    sections = []
    for place in sorted({each.series.key.place for each in trends}):
        rows = tuple(overview_row(each) for each in trends if each.series.key.place == place)
        sections.append(Section(describe_place(place), (Table(columns=OVERVIEW, rows=rows),)))
    return render(Page(title="", blocks=tuple(sections)), Format.TERMINAL, width=width, color=color)


def render_trend(trend: Trend, *, shown: Sequence[CommitPoint], width: int, color: bool) -> Rendered:
    """A table of commits, the newest last, and a plot of them."""
    plot = plot_as_text(trend, shown, width=max(width, NARROWEST))
    page = Page(
        title=describe(trend.series),
        blocks=(
            Table(columns=_COMMITS, rows=tuple(_row(trend, point) for point in shown)),
            Section("", tuple(Text(each, is_whole=True) for each in plot)),
            Bullets(tuple(describe_anchors(trend)), Tone.QUIET),
        ),
    )
    return render(page, Format.TERMINAL, width=width, color=color)


def describe(series: MetricSeries) -> str:
    """Metric, scenario and runs of a series, in a line."""
    return f"{name_of(series)}: {counted(len(series.runs), 'run')}, {series.better} is better"


def name_of(series: MetricSeries) -> str:
    """Metric and scenario of a series."""
    return f"{series.metric} {series.title} of '{series.key.scenario}'"


def describe_origin(series: MetricSeries) -> str:
    """Stack, host class and source of a series."""
    return describe_place(series.key) + (f", from {series.source}" if series.source else "")


def describe_anchors(trend: Trend) -> Iterator[str]:
    """Anchors, noise, and what there is to know besides."""
    unit = trend.series.unit
    yield describe_origin(trend.series)
    if trend.anchor is not None:
        name = f"pinned anchor: {trend.pinned}" if trend.pinned else "nothing is pinned; anchor: the first runs"
        yield f"{name}, {format_quantity(trend.anchor, unit)}"
    if trend.rolling is not None:
        yield f"rolling anchor: last {trend.window} accepted runs, {format_quantity(trend.rolling, unit)}"
    if trend.run_deviation is not None:
        yield (
            f"runs of one level differ by {100 * trend.run_deviation:.1f} % (neighbours correlate by "
            f"{trend.correlation:.2f}); a single step counts from {100 * trend.floor:.1f} % on"
        )
    yield from trend.notes


def describe_marks(trend: Trend, point: CommitPoint) -> list[str]:
    """Remarks on a commit besides its numbers."""
    marks = ["pinned"] if trend.is_pinned(point) else []
    if point.change_point:
        marks.append("level changes")
    if point.creeps:
        marks.append(f"creep: {' and '.join(point.creeps)}")
    marks += sorted({run.verdict for run in point.runs if not run.is_accepted and run.verdict})
    if point.failed:
        marks.append(f"{point.failed} failed")
    return marks


def overview_row(trend: Trend) -> tuple[Cell, ...]:
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
        Words(", ".join(marks), Tone.DOUBT),
    )


def _row(trend: Trend, point: CommitPoint) -> tuple[Cell, ...]:
    unit = trend.series.unit
    return (
        _short(point.label),
        f"{point.runs[0].started_at:%Y-%m-%d}",
        str(point.count),
        _quantity(point.median, unit),
        _quantity(point.location, unit),
        _interval(point, unit),
        show_change(trend, point.step),
        describe_interval(point.step),
        *_since_anchor(trend, point),
        show_change(trend, point.from_rolling),
        Words(", ".join(describe_marks(trend, point)), Tone.DOUBT),
    )


def _quantity(value: float, unit: str) -> str:
    return format_quantity(value, unit) if math.isfinite(value) else _ALL_FAILED


def _interval(point: CommitPoint, unit: str) -> str:
    if not math.isfinite(point.low) or not math.isfinite(point.high):
        return ""
    return f"{format_quantity(point.low, '')} … {format_quantity(point.high, unit)}"


def describe_interval(change: Change | None) -> str:
    if change is None or not math.isfinite(change.low) or not math.isfinite(change.high):
        return ""
    return f"{format_ratio(1 + change.low).removesuffix(' %')} … {format_ratio(1 + change.high)}"


def show_change(trend: Trend, change: Change | None) -> Words:
    """Coloured where it lies above the floor and its interval excludes none."""
    if change is None:
        return Words("")
    sign = 1 if trend.series.better is Better.LOWER else -1
    is_clear = abs(change.effect) > trend.floor and change.low * change.high > 0
    tone = (Tone.BAD if sign * change.effect > 0 else Tone.GOOD) if is_clear else Tone.PLAIN
    return Words(format_ratio(1 + change.effect), tone)


def _since_anchor(trend: Trend, point: CommitPoint) -> tuple[Words, Words]:
    """Since the pinned commit, and since the first runs where nothing is pinned; one of them is empty."""
    change = show_change(trend, point.from_anchor)
    return (change, Words("")) if trend.pinned else (Words(""), change)


def _short(label: str) -> str:
    return label if len(label) <= _LABEL or "-" in label else label[:_LABEL]
