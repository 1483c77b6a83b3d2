"""Many traces: contents of each, totals, and traces that could not be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import PurePath
from typing import Final

from pytest_ldos.base.text import Rendered, counted, format_quantity
from pytest_ldos.fleet.measure import Pooled, TraceSummary, is_whole, median_of, metric_names, pool
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.show.page.formats import Format, render
from pytest_ldos.show.page.model import ABSENT, Bullets, Column, Kind, Page, Section, Table, Text, Tone, left_out

_MOST: Final = 40
_REFINING: Final = frozenset(metric.name for metric in METRICS.values() if metric.refines)
"""Metrics shown over all traces only, for lack of space."""


def render_fleet(summaries: Sequence[TraceSummary], *, width: int, color: bool, whole: bool) -> Rendered:
    """One table per question; unreadable traces are always shown.

    Args:
        whole: show all readable traces; otherwise the first ones, and the number of the others.
    """
    return render(compose_page(summaries, None if whole else _MOST), Format.TERMINAL, width=width, color=color)


def compose_page(summaries: Sequence[TraceSummary], most: int | None) -> Page:
    """Each trace, then all together, then those that cannot be read.

    Args:
        most: most readable traces to show; ``None`` for all.
    """
    readable = [each for each in summaries if not each.problem]
    unreadable = [each for each in summaries if each.problem]
    common = _common_folder(summaries)
    problems = tuple(Text(f"{_short(each.trace, common)}: {each.problem}", is_whole=True) for each in unreadable)
    damaged = tuple(f"{_short(each.trace, common)}: {each.damage}" for each in readable if each.damage)
    return Page(
        title=_headline(readable, unreadable, common),
        tone=Tone.BAD if unreadable else Tone.STRONG,
        blocks=(
            _trace_table(readable[:most], common),
            *left_out(len(readable) - len(readable[:most])),
            Bullets(damaged, Tone.DOUBT),
            _pool_table(pool(readable)),
            *_without(sum(not is_whole(each) for each in readable)),
            Section("could not be read", problems),
        ),
    )


def _headline(readable: Sequence[TraceSummary], unreadable: Sequence[TraceSummary], common: str) -> str:
    count = len(readable) + len(unreadable)
    goals = sum(each.reached + each.failed + each.unknown for each in readable)
    bad = f"; {len(unreadable)} could not be read" if unreadable else ""
    where = f" below {common}" if common else ""
    events = counted(sum(each.events for each in readable), "event")
    return f"{counted(count, 'trace')}{where}: {events}, {counted(goals, 'goal')}{bad}"


def _common_folder(summaries: Sequence[TraceSummary]) -> str:
    """Common parent folder of all traces; empty for one trace or if there is none."""
    if len(summaries) < 2:
        return ""
    levels = zip(*(PurePath(each.trace).parent.parts for each in summaries), strict=False)
    common = [names[0] for names in takewhile(lambda names: len(set(names)) == 1, levels)]
    return str(PurePath(*common)) if common not in ([], ["/"]) else ""


def _short(trace: str, common: str) -> str:
    name = PurePath(trace)
    return str(name.relative_to(common)) if common else str(name)


def _trace_table(summaries: Sequence[TraceSummary], common: str) -> Table:
    metrics = [name for name in metric_names(summaries) if name not in _REFINING and _is_known(name, summaries)]
    return Table(
        columns=(
            Column("trace", Kind.NAME),
            Column("nodes"),
            Column("goals", Kind.NAME),
            *map(Column, (*metrics, "lost")),
        ),
        rows=tuple(_row(each, metrics, common) for each in summaries),
    )


def _is_known(metric: str, summaries: Sequence[TraceSummary]) -> bool:
    return any(median_of(each, metric) is not None for each in summaries)


def _row(summary: TraceSummary, metrics: Sequence[str], common: str) -> tuple[str, ...]:
    medians = (median_of(summary, name) for name in metrics)
    numbers = (ABSENT if found is None else format_quantity(*found) for found in medians)
    name = _short(summary.trace, common)
    return (name, str(summary.nodes), _goals(summary), *numbers, str(summary.lost_events))


def _goals(summary: TraceSummary) -> str:
    """``2 reached, 1 failed``; goals without a marker are unknown."""
    counts = (("reached", summary.reached), ("failed", summary.failed), ("unknown", summary.unknown))
    return ", ".join(f"{count} {word}" for word, count in counts if count) or ABSENT


def _pool_table(pooled: Sequence[Pooled]) -> Table:
    rows = (
        (
            each.metric,
            str(each.count),
            str(each.traces),
            format_quantity(each.median, each.unit),
            format_quantity(each.p95, each.unit),
            each.source or "own function",
        )
        for each in pooled
    )
    numbers = map(Column, ("goals", "traces", "median", "p95"))
    columns = (Column("metric", Kind.NAME), *numbers, Column("source", Kind.WORD))
    return Table(columns=columns, rows=tuple(rows))


def _without(traces: int) -> Iterator[Text]:
    if traces:
        those = "1 trace that is" if traces == 1 else f"{traces} traces that are"
        yield Text(f"left out: {those} damaged or lost events", Tone.DOUBT)
