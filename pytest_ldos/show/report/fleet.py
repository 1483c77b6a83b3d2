"""Many traces, for a terminal: what each has, what all have together, and which could not be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import PurePath
from typing import Final

from pytest_ldos.base.text import Rendered
from pytest_ldos.base.units import counted, format_quantity
from pytest_ldos.fleet.pool import Pooled, is_whole, median_of, metric_names, pool
from pytest_ldos.fleet.summary import TraceSummary
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.show.report.console import Line, line, print_to_text
from pytest_ldos.show.report.tables import column, plain_table, tabulate

_MOST: Final = 40
_NOTHING: Final = "–"
_REFINING: Final = frozenset(metric.name for metric in METRICS.values() if metric.refines)
"""Shown over all traces only: a line has no place for them."""


def render_fleet(summaries: Sequence[TraceSummary], *, width: int, color: bool, whole: bool) -> Rendered:
    """One table a question; unreadable traces are all there, whatever else is left out.

    Args:
        whole: all readable traces; else the first of them, with the number of the others.
    """
    readable = [each for each in summaries if not each.problem]
    unreadable = [each for each in summaries if each.problem]
    common = _common_folder(summaries)
    lines = [_headline(readable, unreadable, common)]
    lines += _trace_table(readable, common, width, None if whole else _MOST)
    lines += _pool_table(pool(readable), width, left_out=sum(not is_whole(each) for each in readable))
    lines += _unreadable_table(unreadable, common)
    return print_to_text(lines, color=color)


def _headline(readable: Sequence[TraceSummary], unreadable: Sequence[TraceSummary], common: str) -> Line:
    count = len(readable) + len(unreadable)
    goals = sum(each.reached + each.failed + each.unknown for each in readable)
    bad = f"; {len(unreadable)} could not be read" if unreadable else ""
    where = f" below {common}" if common else ""
    events = counted(sum(each.events for each in readable), "event")
    text = f"{counted(count, 'trace')}{where}: {events}, {counted(goals, 'goal')}{bad}"
    return line(text, style="bold red" if unreadable else "bold")


def _common_folder(summaries: Sequence[TraceSummary]) -> str:
    """What all names begin with; empty for one trace, and for traces that have no folder in common."""
    if len(summaries) < 2:
        return ""
    levels = zip(*(PurePath(each.trace).parent.parts for each in summaries), strict=False)
    common = [names[0] for names in takewhile(lambda names: len(set(names)) == 1, levels)]
    return str(PurePath(*common)) if common not in ([], ["/"]) else ""


def _short(trace: str, common: str) -> str:
    name = PurePath(trace)
    return str(name.relative_to(common)) if common else str(name)


def _trace_table(summaries: Sequence[TraceSummary], common: str, width: int, most: int | None) -> Iterator[Line]:
    if not summaries:
        return
    metrics = [name for name in metric_names(summaries) if name not in _REFINING and _is_known(name, summaries)]
    titles = ("trace", "nodes", "goals", *metrics, "lost")
    columns = [column(title, is_name=place in {0, 2}) for place, title in enumerate(titles)]
    yield line()
    yield from tabulate(columns, [_row(each, metrics, common) for each in summaries[:most]], width=width)
    if most is not None and len(summaries) > most:
        yield line(f"… and {len(summaries) - most} more (--all shows them)", style="dim")
    damaged = (each for each in summaries if each.damage)
    yield from (line(f"{_short(each.trace, common)}: {each.damage}", style="yellow") for each in damaged)


def _is_known(metric: str, summaries: Sequence[TraceSummary]) -> bool:
    return any(median_of(each, metric) is not None for each in summaries)


def _row(summary: TraceSummary, metrics: Sequence[str], common: str) -> tuple[str, ...]:
    medians = (median_of(summary, name) for name in metrics)
    numbers = (_NOTHING if found is None else format_quantity(*found) for found in medians)
    name = _short(summary.trace, common)
    return (name, str(summary.nodes), _goals(summary), *numbers, str(summary.lost_events))


def _goals(summary: TraceSummary) -> str:
    """``2 reached, 1 failed``; what no marker tells of is unknown."""
    counts = (("reached", summary.reached), ("failed", summary.failed), ("unknown", summary.unknown))
    return ", ".join(f"{count} {word}" for word, count in counts if count) or _NOTHING


def _pool_table(pooled: Sequence[Pooled], width: int, *, left_out: int) -> Iterator[Line]:
    rows = [
        (
            each.metric,
            str(each.count),
            str(each.traces),
            format_quantity(each.median, each.unit),
            format_quantity(each.p95, each.unit),
            each.source or "own function",
        )
        for each in pooled
    ]
    if rows or left_out:
        yield line()
    if rows:
        yield from plain_table(
            ("metric", "goals", "traces", "median", "p95", "source"), rows, width=width, left=("source",)
        )
    if left_out:
        those = "1 trace that is" if left_out == 1 else f"{left_out} traces that are"
        yield line(f"left out: {those} damaged or lost events", style="yellow")


def _unreadable_table(summaries: Sequence[TraceSummary], common: str) -> Iterator[Line]:
    """Lines that stay whole: paths and reasons are to be copied."""
    if not summaries:
        return
    yield line()
    yield line("could not be read", style="dim")
    for each in summaries:
        yield line(f"{_short(each.trace, common)}: {each.problem}")
