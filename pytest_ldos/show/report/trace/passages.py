"""Passages of each path: the median one and the worst one, and their parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from pytest_ldos.base.paths import PathSpec
from pytest_ldos.base.text import counted, format_duration
from pytest_ldos.show.page.model import ABSENT, Block, Column, Drawing, Figure, Kind, Section, Table, Text
from pytest_ldos.trace.flow.critical import CriticalPaths, break_down
from pytest_ldos.trace.flow.graph import FlowGraph
from pytest_ldos.trace.flow.paths import PathInstances, find_path

if TYPE_CHECKING:
    from htpy import Node


_MOST_PARTS: Final = 40


@dataclass(frozen=True)
class Part:
    """Part of a passage.

    Attributes:
        name: ``KIND: SUBJECT``.
        note: shown after its duration, such as a change.
        is_marked: True for a highlighted part.
    """

    name: str
    duration_ns: int
    note: str = ""
    is_marked: bool = False


@dataclass(frozen=True)
class Waterfall:
    """The parts of a passage in order; they sum to its latency.

    Attributes:
        whole_ns: latency of the whole if the parts do not sum to it, because each is a median of many passages.
    """

    title: str
    parts: tuple[Part, ...]
    whole_ns: int | None = None

    @property
    def duration_ns(self) -> int:
        """Sum of the parts."""
        return sum(part.duration_ns for part in self.parts)


def waterfall_of(title: str, segments: pl.DataFrame, passage: int) -> Waterfall:
    """The waterfall of one passage of `break_down`; consecutive equal parts are merged."""
    rows = segments.filter(pl.col("passage") == passage).sort("position")
    parts: list[Part] = []
    for kind, subject, duration_ns in rows.select("kind", "subject", "duration_ns").iter_rows():
        name = f"{kind}: {subject}" if subject else str(kind)
        before = parts.pop().duration_ns if parts and parts[-1].name == name else 0
        parts.append(Part(name, before + duration_ns))
    return Waterfall(title, _shortened(parts))


def _shortened(parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts; if there are too many, the shortest are merged at the end."""
    if len(parts) <= _MOST_PARTS:
        return tuple(parts)
    limit = sorted(part.duration_ns for part in parts)[-_MOST_PARTS]
    kept = [part for part in parts if part.duration_ns >= limit][:_MOST_PARTS]
    rest = sum(part.duration_ns for part in parts) - sum(part.duration_ns for part in kept)
    return (*kept, Part(f"{len(parts) - len(kept)} shorter parts", rest))


def mark_growth(base: Waterfall, head: Waterfall) -> tuple[Waterfall, Waterfall]:
    """Both waterfalls with the part marked that grew most, if any grew."""
    one, other = sums_of(base), sums_of(head)
    grown = {name: duration_ns - one.get(name, 0) for name, duration_ns in other.items()}
    most = max(grown, key=lambda name: grown[name], default="")
    marked = most if most and grown[most] > 0 else ""
    return mark(base, marked), mark(head, marked)


def mark(shown: Waterfall, name: str) -> Waterfall:
    """The waterfall with the parts of the given name marked."""
    return replace(shown, parts=tuple(replace(part, is_marked=part.name == name) for part in shown.parts))


def sums_of(shown: Waterfall) -> dict[str, int]:
    """Sums of durations by name."""
    sums: dict[str, int] = {}
    for part in shown.parts:
        sums[part.name] = sums.get(part.name, 0) + part.duration_ns
    return sums


_TOO_MANY: Final = 20
"""Factor between durations beyond which passages are drawn on separate scales."""


@dataclass(frozen=True)
class PathPassages:
    """All passages of a path, in parts."""

    instances: PathInstances
    segments: pl.DataFrame

    @property
    def latencies_ns(self) -> list[int]:
        return self.instances.table["latency_ns"].to_list()

    def waterfall(self, title: str, place: float) -> Waterfall:
        """The passage at a quantile of latency: 0 is the shortest, 0.5 the median, 1 the worst."""
        order = np.argsort(self.instances.table["latency_ns"].to_numpy(), kind="stable")
        return waterfall_of(title, self.segments, int(order[int((len(order) - 1) * place)]))


def find_passages(flow: FlowGraph, paths: Sequence[PathSpec], thread_states: pl.DataFrame | None) -> list[PathPassages]:
    """The passages of each path with at least one."""
    critical = CriticalPaths(flow)
    found = [each for each in (find_path(flow, path) for path in paths) if len(each)]
    states = thread_states if thread_states is not None and len(thread_states) else None
    return [PathPassages(each, break_down(flow, each, thread_states=states, critical=critical)) for each in found]


def show_passages(passages: PathPassages) -> Section:
    """A path with its waterfalls and the distribution of its latency."""
    path, latencies = passages.instances.path, passages.latencies_ns
    median, worst = passages.waterfall("median passage", 0.5), passages.waterfall("worst passage", 1.0)
    missed = (
        f"; deadline {format_duration(path.deadline_ns)}: {passages.instances.missed} missed"
        if path.deadline_ns
        else ""
    )
    note = (
        f"{' → '.join(path.via)}: {counted(len(latencies), 'passage')}, "
        f"median {format_duration(median.duration_ns)}, worst {format_duration(worst.duration_ns)}{missed}"
    )
    return Section(
        f"path {path.name}",
        (
            Text(note),
            *show_waterfalls(median, worst, of=path.name),
            _histogram(f"latency of {path.name}", latencies),
        ),
    )


def show_waterfalls(one: Waterfall, other: Waterfall, *, of: str = "") -> Iterator[Block]:
    """Two waterfalls, one above the other, and their table.

    Args:
        of: name of the path, if the page has several.
    """
    scale = max(one.duration_ns, other.duration_ns)
    scale = 0 if scale > _TOO_MANY * min(one.duration_ns, other.duration_ns) else scale
    yield Figure(
        title=f"{of}: {one.title} and {other.title}" if of else f"{one.title} and {other.title}",
        drawings=(_drawings(one, other, scale),),
        table=_side_by_side(one, other),
    )


def _drawings(one: Waterfall, other: Waterfall, scale_ns: int) -> Drawing:
    """Draws both on one scale, one above the other, so that they can be compared by eye."""

    def draw() -> Node:
        from pytest_ldos.show.report.trace.drawings import draw_waterfalls  # noqa: PLC0415 - see `Drawing`

        return draw_waterfalls((one, other), scale_ns=scale_ns)

    return Drawing(draw)


def _histogram(name: str, latencies_ns: Sequence[int]) -> Drawing:
    def draw() -> Node:
        from pytest_ldos.show.report.trace.drawings import draw_latencies  # noqa: PLC0415 - see `Drawing`

        return draw_latencies(name, latencies_ns)

    return Drawing(draw)


def _side_by_side(one: Waterfall, other: Waterfall) -> Table:
    sums = [sums_of(each) for each in (one, other)]
    rows = tuple(
        (name, *(ABSENT if (found := each.get(name)) is None else format_duration(found) for each in sums))
        for name in dict.fromkeys(name for each in sums for name in each)
    )
    return Table(columns=(Column("part", Kind.NAME), Column(one.title), Column(other.title)), rows=rows)
