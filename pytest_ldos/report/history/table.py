"""Trends for a terminal: an overview of all series, or the commits of each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pytest_ldos.baseline.history.commits import CommitPoint
from pytest_ldos.baseline.history.creep import PIN, START
from pytest_ldos.baseline.history.levels import Change
from pytest_ldos.baseline.history.series import MetricSeries
from pytest_ldos.baseline.history.trend import Trend
from pytest_ldos.report.console import print_to_text
from pytest_ldos.report.history.text_plot import plot_as_text
from pytest_ldos.series import Better
from pytest_ldos.text import one_line, visible
from pytest_ldos.units import format_quantity, format_ratio

_NARROWEST: Final = 80
_GAP: Final = 2
_LEFT: Final = frozenset({"commit", "date", "scenario", "metric", ""})
_COLUMNS: Final = (
    ("commit", 0),
    ("date", 9),
    ("n", 8),
    ("median", 10),
    ("location", 1),
    ("interval", 7),
    ("step", 2),
    ("interval", 6),
    *((f"since {anchor}", 3) for anchor in (PIN, START)),
    ("rolling", 5),
    ("", 4),
)
"""Titles, and in which order columns get a place where not all fit."""

_OVERVIEW: Final = ("scenario", "metric", "runs", "now", *(f"since {anchor}" for anchor in (PIN, START)), "rolling", "")
_LABEL: Final = 13
_ALL_FAILED: Final = "failed"


def render_overview(trends: Sequence[Trend], *, width: int, color: bool) -> str:
    """One line a series."""
    parts: list[RenderableType] = []
    for stack, host_class in sorted({(each.series.folder.stack, each.series.folder.host_class) for each in trends}):
        here = [
            each for each in trends if (each.series.folder.stack, each.series.folder.host_class) == (stack, host_class)
        ]
        rows = [_overview_row(each) for each in here]
        shown = [number for number in range(len(_OVERVIEW)) if any(row[number].plain for row in rows)]
        table = _new_table()
        for title in (_OVERVIEW[number] for number in shown):
            justify: Literal["left", "right"] = "left" if title in _LEFT else "right"
            table.add_column(title, justify=justify, no_wrap=bool(title), min_width=len(title) or None)
        for row in rows:
            table.add_row(*(row[number] for number in shown))
        parts += [_line(f"stack {stack}, host class {host_class}", "bold"), table, Text()]
    return print_to_text(Group(*parts[:-1]), width=max(width, _NARROWEST), color=color)


def render_trend(trend: Trend, *, shown: Sequence[CommitPoint], width: int, color: bool) -> str:
    """A table of commits, the newest last, and a plot of them."""
    width = max(width, _NARROWEST)
    rows = [_row(trend, point) for point in shown]
    cells = [tuple(row[number] for row in rows) for number in range(len(_COLUMNS))]
    chosen = _choose(cells, width)
    table = _new_table()
    for number in chosen:
        title = _COLUMNS[number][0]
        table.add_column(title, justify="left" if title in _LEFT else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(row[number] for number in chosen))
    parts: list[RenderableType] = [_line(describe(trend.series), "bold"), table, Text()]
    parts += [_line(line, "") for line in plot_as_text(trend, shown, width=width)]
    parts += [_line(line, "dim") for line in describe_anchors(trend)]
    return print_to_text(Group(*parts), width=width, color=color)


def _choose(cells: Sequence[Sequence[Text]], width: int) -> list[int]:
    """The columns that fit, the more important ones first; in the order of display."""
    chosen: list[int] = []
    for number, (title, _) in sorted(enumerate(_COLUMNS), key=lambda column: column[1][1]):
        needed = max(cell_len(title), *(cell.cell_len for cell in cells[number])) + _GAP
        if any(cell.plain for cell in cells[number]) and needed <= width:
            chosen.append(number)
            width -= needed
    return sorted(chosen)


def describe(series: MetricSeries) -> str:
    """What a series is of, in a line."""
    title = f"{series.metric} {series.title} of '{series.folder.scenario}'"
    return f"{title}: {len(series.runs)} runs, {series.better} is better"


def describe_place(series: MetricSeries) -> str:
    """Where a series was measured."""
    source = f", from {series.source}" if series.source else ""
    return f"stack {series.folder.stack}, host class {series.folder.host_class}{source}"


def describe_anchors(trend: Trend) -> Iterator[str]:
    """Anchors, noise, and what there is to know besides."""
    unit = trend.series.unit
    yield describe_place(trend.series)
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
    """What there is to say of a commit besides its numbers."""
    marks = []
    if point.change_point:
        marks.append("level changes")
    if point.creeps:
        marks.append(f"creep: {' and '.join(point.creeps)}")
    marks += sorted({run.verdict for run in point.runs if not run.is_accepted and run.verdict})
    if point.failed:
        marks.append(f"{point.failed} failed")
    return marks


def _overview_row(trend: Trend) -> list[Text]:
    last, series = trend.commits[-1], trend.series
    changes = [point for point in trend.commits if point.change_point]
    marks = [f"level changed at {_short(changes[-1].label)}"] if changes else []
    if last.creeps:
        marks.append(f"creep: {' and '.join(last.creeps)}")
    cells = (series.folder.scenario, series.metric, str(len(series.runs)), _quantity(last.location, series.unit))
    return [
        *(Text(one_line(cell)) for cell in cells),
        *_since_anchor(trend, last),
        _change(trend, last.from_rolling),
        Text(visible(", ".join(marks)), style="yellow"),
    ]


def _row(trend: Trend, point: CommitPoint) -> list[Text]:
    unit = trend.series.unit
    texts = (
        _short(point.label),
        f"{point.runs[0].started_at:%Y-%m-%d}",
        str(point.count),
        _quantity(point.median, unit),
        _quantity(point.location, unit),
        _interval(point, unit),
    )
    return [
        *(Text(one_line(text)) for text in texts),
        _change(trend, point.step),
        Text(_change_interval(point.step)),
        *_since_anchor(trend, point),
        _change(trend, point.from_rolling),
        Text(visible(", ".join(describe_marks(trend, point))), style="yellow"),
    ]


def _quantity(value: float, unit: str) -> str:
    return format_quantity(value, unit) if math.isfinite(value) else _ALL_FAILED


def _interval(point: CommitPoint, unit: str) -> str:
    if not math.isfinite(point.low) or not math.isfinite(point.high):
        return ""
    return f"{format_quantity(point.low, '')} … {format_quantity(point.high, unit)}"


def _change_interval(change: Change | None) -> str:
    if change is None or not math.isfinite(change.low) or not math.isfinite(change.high):
        return ""
    return f"{format_ratio(1 + change.low).removesuffix(' %')} … {format_ratio(1 + change.high)}"


def _change(trend: Trend, change: Change | None) -> Text:
    """Coloured where it lies above the floor and its interval excludes none."""
    if change is None:
        return Text("")
    sign = 1 if trend.series.better is Better.LOWER else -1
    is_clear = abs(change.effect) > trend.floor and change.low * change.high > 0
    style = ("red" if sign * change.effect > 0 else "green") if is_clear else ""
    return Text(format_ratio(1 + change.effect), style=style)


def _since_anchor(trend: Trend, point: CommitPoint) -> tuple[Text, Text]:
    """Since the pinned commit, and since the first runs where nothing is pinned; one of them is empty."""
    change = _change(trend, point.from_anchor)
    return (change, Text("")) if trend.pinned else (Text(""), change)


def _short(label: str) -> str:
    return label if len(label) <= _LABEL or "-" in label else label[:_LABEL]


def _new_table() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")


def _line(text: str, style: str) -> Text:
    return Text(visible(text), style=style, no_wrap=True, overflow="ignore")
