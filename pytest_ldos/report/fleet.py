"""Many traces, for a terminal: what each has, what all have together, and which could not be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import PurePath
from typing import Final, Literal

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pytest_ldos.fleet.pool import Pooled, is_whole, median_of, metric_names, pool
from pytest_ldos.fleet.summary import TraceSummary
from pytest_ldos.report.console import print_to_text
from pytest_ldos.report.tables import line, plain_table
from pytest_ldos.text import one_line, visible
from pytest_ldos.units import format_quantity

_MOST: Final = 40
_NAME: Final = 16
"""Characters that a trace's name gets in any case."""

_NOTHING: Final = "–"
_REFINING: Final = ("T2x", "T3p99", "T5p99")
"""Shown over all traces only: a line has no place for them."""


def render_fleet(summaries: Sequence[TraceSummary], *, width: int, color: bool, whole: bool) -> str:
    """One table a question; unreadable traces are all there, whatever else is left out.

    Args:
        whole: all readable traces; else the first of them, with the number of the others.
    """
    readable = [each for each in summaries if not each.problem]
    unreadable = [each for each in summaries if each.problem]
    common = _common_folder(summaries)
    parts: list[RenderableType] = [_headline(readable, unreadable, common)]
    parts += _trace_table(readable, common, None if whole else _MOST)
    parts += _pool_table(pool(readable), left_out=sum(not is_whole(each) for each in readable))
    parts += _unreadable_table(unreadable, common)
    return print_to_text(Group(*parts), width=width, color=color)


def _headline(readable: Sequence[TraceSummary], unreadable: Sequence[TraceSummary], common: str) -> Text:
    count = len(readable) + len(unreadable)
    goals = sum(each.reached + each.failed + each.unknown for each in readable)
    bad = f"; {len(unreadable)} could not be read" if unreadable else ""
    where = f" below {common}" if common else ""
    traces = "1 trace" if count == 1 else f"{count} traces"
    text = f"{traces}{where}: {sum(each.events for each in readable)} events, {goals} goals{bad}"
    return line(text, "bold red" if unreadable else "bold")


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


def _trace_table(summaries: Sequence[TraceSummary], common: str, most: int | None) -> Iterator[RenderableType]:
    if not summaries:
        return
    metrics = [name for name in metric_names(summaries) if name not in _REFINING and _is_known(name, summaries)]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("trace", "nodes", "goals", *metrics, "lost"):
        is_text = title in {"trace", "goals"}
        justify: Literal["left", "right"] = "left" if is_text else "right"
        width = min(_NAME, max(len(_short(each.trace, common)) for each in summaries)) if title == "trace" else None
        table.add_column(Text(visible(title)), justify=justify, no_wrap=not is_text, overflow="fold", min_width=width)
    for each in summaries[:most]:
        table.add_row(*map(Text, _row(each, metrics, common)))
    yield Text()
    yield table
    if most is not None and len(summaries) > most:
        yield line(f"… and {len(summaries) - most} more (--all shows them)", "dim")
    damaged = (each for each in summaries if each.damage)
    yield from (line(f"{one_line(_short(each.trace, common))}: {each.damage}", "yellow") for each in damaged)


def _is_known(metric: str, summaries: Sequence[TraceSummary]) -> bool:
    return any(median_of(each, metric) is not None for each in summaries)


def _row(summary: TraceSummary, metrics: Sequence[str], common: str) -> tuple[str, ...]:
    medians = (median_of(summary, name) for name in metrics)
    numbers = (_NOTHING if found is None else format_quantity(*found) for found in medians)
    name = one_line(_short(summary.trace, common))
    return (name, str(summary.nodes), _goals(summary), *numbers, str(summary.lost_events))


def _goals(summary: TraceSummary) -> str:
    """``2 reached, 1 failed``; what no marker tells of is unknown."""
    counts = (("reached", summary.reached), ("failed", summary.failed), ("unknown", summary.unknown))
    return ", ".join(f"{count} {word}" for word, count in counts if count) or _NOTHING


def _pool_table(pooled: Sequence[Pooled], *, left_out: int) -> Iterator[RenderableType]:
    rows = [
        (
            each.metric,
            str(each.count),
            str(each.traces),
            format_quantity(each.median, each.unit),
            format_quantity(each.p95, each.unit),
            one_line(each.source) or "own function",
        )
        for each in pooled
    ]
    if rows or left_out:
        yield Text()
    if rows:
        yield plain_table(("metric", "goals", "traces", "median", "p95", "source"), rows, left=("source",))
    if left_out:
        those = "1 trace that is" if left_out == 1 else f"{left_out} traces that are"
        yield line(f"left out: {those} damaged or lost events", "yellow")


def _unreadable_table(summaries: Sequence[TraceSummary], common: str) -> Iterator[RenderableType]:
    """Lines that stay whole: paths and reasons are to be copied."""
    if not summaries:
        return
    yield Text()
    yield line("could not be read", "dim")
    for each in summaries:
        yield line(f"{one_line(_short(each.trace, common))}: {one_line(each.problem)}")
