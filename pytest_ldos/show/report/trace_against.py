"""Passages of paths, and traces of two versions side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, Final

import numpy as np
import polars as pl

from pytest_ldos.base.ros2 import PathSpec
from pytest_ldos.base.text import Rendered, counted, format_duration, format_ratio, listed
from pytest_ldos.show.page import model as page
from pytest_ldos.show.page.formats import Format, finite, render, require_format, to_json
from pytest_ldos.show.report.analysis import Analysis
from pytest_ldos.trace.ctf.stats import describe_incomplete
from pytest_ldos.trace.execution.coverage import name_missing
from pytest_ldos.trace.flow.critical import CriticalPaths, break_down
from pytest_ldos.trace.flow.difference import (
    ALPHA,
    FEWEST_RUNS,
    SMALLEST,
    Compared,
    Difference,
    Evidence,
    Run,
    compare_runs,
    sample_run,
)
from pytest_ldos.trace.flow.difference import Kind as Quantity
from pytest_ldos.trace.flow.graph import FlowGraph
from pytest_ldos.trace.flow.lineage import PathInstances, find_path

_MOST_PARTS: Final = 40
_PAGE: Final = "pytest_ldos.show.report.trace_page"


@dataclass(frozen=True)
class Part:
    """Part of a passage: ``KIND: SUBJECT``, and a note such as a change; highlighted if marked."""

    name: str
    duration_ns: int
    note: str = ""
    is_marked: bool = False


@dataclass(frozen=True)
class Waterfall:
    """The parts of a passage in order; they sum to its latency, unless `whole_ns` has it, as for medians."""

    title: str
    parts: tuple[Part, ...]
    whole_ns: int | None = None

    @property
    def duration_ns(self) -> int:
        return sum(part.duration_ns for part in self.parts)


def waterfall_of(title: str, segments: pl.DataFrame, passage: int) -> Waterfall:
    """The waterfall of one passage of `break_down`; consecutive equal parts, and the shortest of many, are merged."""
    rows = segments.filter(pl.col("passage") == passage).sort("position")
    parts: list[Part] = []
    for kind, subject, duration_ns in rows.select("kind", "subject", "duration_ns").iter_rows():
        name = f"{kind}: {subject}" if subject else str(kind)
        before = parts.pop().duration_ns if parts and parts[-1].name == name else 0
        parts.append(Part(name, before + duration_ns))
    if len(parts) <= _MOST_PARTS:
        return Waterfall(title, tuple(parts))
    limit = sorted(part.duration_ns for part in parts)[-_MOST_PARTS]
    kept = [part for part in parts if part.duration_ns >= limit][:_MOST_PARTS]
    rest = sum(part.duration_ns for part in parts) - sum(part.duration_ns for part in kept)
    return Waterfall(title, (*kept, Part(f"{len(parts) - len(kept)} shorter parts", rest)))


def mark_growth(base: Waterfall, head: Waterfall) -> tuple[Waterfall, Waterfall]:
    """Both waterfalls with the part marked that grew most, if any grew."""
    one, other = sums_of(base), sums_of(head)
    grown = {name: duration_ns - one.get(name, 0) for name, duration_ns in other.items()}
    most = max(grown, key=lambda name: grown[name], default="")
    marked = most if most and grown[most] > 0 else ""
    return mark(base, marked), mark(head, marked)


def mark(shown: Waterfall, name: str) -> Waterfall:
    return replace(shown, parts=tuple(replace(part, is_marked=part.name == name) for part in shown.parts))


def sums_of(shown: Waterfall) -> dict[str, int]:
    sums: dict[str, int] = {}
    for part in shown.parts:
        sums[part.name] = sums.get(part.name, 0) + part.duration_ns
    return sums


_TOO_MANY: Final = 20  # factor between durations beyond which passages are drawn on separate scales


@dataclass(frozen=True)
class PathPassages:
    instances: PathInstances
    segments: pl.DataFrame

    def waterfall(self, title: str, place: float) -> Waterfall:
        """The passage at a quantile of latency: 0 is the shortest, 0.5 the median, 1 the worst."""
        order = np.argsort(self.instances.table["latency_ns"].to_numpy(), kind="stable")
        return waterfall_of(title, self.segments, int(order[int((len(order) - 1) * place)]))


def find_passages(flow: FlowGraph, paths: Sequence[PathSpec], thread_states: pl.DataFrame | None) -> list[PathPassages]:
    critical = CriticalPaths(flow)
    found = [each for each in (find_path(flow, path) for path in paths) if len(each)]
    states = thread_states if thread_states is not None and len(thread_states) else None
    return [PathPassages(each, break_down(flow, each, thread_states=states, critical=critical)) for each in found]


def show_passages(passages: PathPassages) -> page.Section:
    path, latencies_ns = passages.instances.path, passages.instances.table["latency_ns"].to_list()
    median, worst = passages.waterfall("median passage", 0.5), passages.waterfall("worst passage", 1.0)
    note = (
        f"{' → '.join(path.via)}: {counted(len(latencies_ns), 'passage')}, "
        f"median {format_duration(median.duration_ns)}, worst {format_duration(worst.duration_ns)}"
    )
    if path.deadline_ns:
        note = f"{note}; deadline {format_duration(path.deadline_ns)}: {passages.instances.missed} missed"

    drawn = page.drawn_by(f"{_PAGE}:draw_latencies", f"latency of {path.name}", latencies_ns)
    return page.Section(f"path {path.name}", (page.Text(note), *show_waterfalls(median, worst, of=path.name), drawn))


def show_waterfalls(one: Waterfall, other: Waterfall, *, of: str = "") -> Iterator[page.Block]:
    """Two waterfalls of a path, one above the other on one scale, and their table."""
    shortest, longest = sorted((one.duration_ns, other.duration_ns))
    scale_ns = 0 if longest > _TOO_MANY * shortest else longest
    sums = [sums_of(each) for each in (one, other)]
    rows = tuple(
        (name, *(page.ABSENT if (found := each.get(name)) is None else format_duration(found) for each in sums))
        for name in dict.fromkeys(name for each in sums for name in each)
    )
    yield page.Figure(
        title=f"{of}: {one.title} and {other.title}" if of else f"{one.title} and {other.title}",
        drawings=(page.drawn_by(f"{_PAGE}:draw_waterfalls", (one, other), scale_ns=scale_ns),),
        table=page.Table(columns=(*page.names("part"), *page.numbers(one.title, other.title)), rows=rows),
    )


_MOST: Final = 15
_WIDEST: Final = 20.0  # ratio beyond which a bound is shown as infinite
_MOST_NAMES: Final = 3  # most traces or quantities named in a sentence
ONE_RUN: Final = (
    "One run of each was seen: differences between versions cannot be distinguished from differences between "
    "starts. Name several runs of each, or compare results of many starts with ldos compare."
)


@dataclass(frozen=True, kw_only=True)
class SeenRun:
    """Facts of one run to show; the trace itself is not kept. Equal extents identify a copy."""

    name: str
    events: int
    damage: str
    extent: tuple[object, ...]
    run: Run
    waterfalls: Mapping[str, Waterfall]


def see_run(analysis: Analysis, *, drawn: bool) -> SeenRun:
    """Extracts the facts of a trace for the comparison, with waterfalls if they will be drawn."""
    model = analysis.flow.model
    times = model.publications["time_ns"]
    passages = find_passages(analysis.flow, analysis.paths, analysis.thread_states) if drawn else []
    return SeenRun(
        name=analysis.name,
        events=model.stats.events,
        damage=", ".join(filter(None, (describe_incomplete(model.stats), name_missing(model)))),
        extent=(model.stats.events, len(times), times.min(), times.max()),
        run=sample_run(analysis.flow, analysis.paths),
        waterfalls={each.instances.path.name: each.waterfall("median passage", 0.5) for each in passages},
    )


def render_against(
    bases: Sequence[SeenRun],
    heads: Sequence[SeenRun],
    kind: Format = Format.TERMINAL,
    *,
    width: int = 100,
    color: bool = False,
    whole: bool = True,
) -> Rendered:
    """Renders what is new, gone or significantly different in a format, which may be `Unavailable`; all if `whole`."""
    require_format(kind)
    difference = compare_runs([each.run for each in bases], [each.run for each in heads])
    if kind is Format.JSON:
        return to_json(_plain(bases, heads, difference))
    composed = _compose(bases, heads, difference, None if whole or kind is not Format.TERMINAL else _MOST)
    if kind is Format.HTML:
        composed = replace(composed, blocks=(*composed.blocks, *_paths(bases, heads)), is_interactive=True)
    return render(composed, kind, width=width, color=color)


def _compose(bases: Sequence[SeenRun], heads: Sequence[SeenRun], difference: Difference, most: int | None) -> page.Page:
    differing = [each for each in difference.compared if each.differs]
    counts = (
        f"{counted(len(differing), 'time or rate differs', 'times or rates differ')} {_sure(difference)}, "
        f"{len(difference.new)} new, {len(difference.gone)} gone"
    )
    first = [f"; the largest: {each.kind} {each.name}, {format_ratio(each.ratio)}" for each in differing[:1]]
    in_some = listed(difference.in_some_runs, _MOST_NAMES)
    return page.Page(
        title=f"{'Trace' if len(heads) == 1 else 'Traces'} {_names(heads)} compared with {_names(bases)}",
        answer="".join((counts, *first, _grown(bases, heads, differing))),
        setting=tuple(_setting(bases, heads, difference)),
        blocks=(
            page.Text(
                describe_evidence(difference),
                page.Tone.QUIET if difference.evidence is Evidence.RUNS else page.Tone.DOUBT,
            ),
            *(
                [page.Text(f"not compared, as not every run has enough values: {in_some}", page.Tone.DOUBT)]
                if in_some
                else []
            ),
            page.Section("New or gone", (_changed(difference),)),
            page.Section("Times and rates", tuple(_compared(difference, most))),
        ),
        made=f"pytest-ldos {version('pytest-ldos')}",
    )


def _sure(difference: Difference) -> str:
    return "in every run" if difference.evidence is Evidence.SEPARATION else "beyond chance"


def _names(runs: Sequence[SeenRun]) -> str:
    return listed([each.name for each in runs], _MOST_NAMES)


def describe_evidence(difference: Difference) -> str:
    match difference.evidence:
        case Evidence.PASSAGES:
            return ONE_RUN
        case Evidence.SEPARATION:
            chance = f"1 of {1 / difference.chance:.0f}"
            return (
                f"{_counts(difference)} were seen: a quantity is reported if it differs over passages, and all "
                f"runs of head are beyond all of base. Equal versions do this by chance in {chance} quantities; "
                f"with {FEWEST_RUNS} runs of each, runs are tested."
            )
        case Evidence.RUNS:
            how = "each counts once, by its median, and differences are tested over runs"
            return f"{_counts(difference)} were seen: {how}."


def _counts(difference: Difference) -> str:
    return f"{counted(difference.base_runs, 'run')} of base and {counted(difference.head_runs, 'run')} of head"


def _grown(bases: Sequence[SeenRun], heads: Sequence[SeenRun], differing: Sequence[Compared]) -> str:
    """The part with the largest growth in the path that differs most, if passages are drawn."""
    for path in (each.name for each in differing if each.kind is Quantity.PATH and each.ratio > 1):
        if all(any(path in each.waterfalls for each in side) for side in (bases, heads)):
            _, grown = mark_growth(_middle("base", bases, path), _middle("head", heads, path))
            name = next((part.name for part in grown.parts if part.is_marked), "")
            return f"; in path {path}, most of it in {name}" if name else ""
    return ""


def _setting(bases: Sequence[SeenRun], heads: Sequence[SeenRun], difference: Difference) -> Iterator[str]:
    for what, runs in (("base", bases), ("head", heads)):
        damaged = ((each, f" ({each.damage})" if each.damage else "") for each in runs)
        facts = (f"{each.name}, {counted(each.events, 'event')}{damage}" for each, damage in damaged)
        yield f"{what}: {'; '.join(facts)}"
    smallest = f"smallest difference reported: {100 * SMALLEST:g} %"
    chance = f"probability of any false difference: {100 * ALPHA:g} %"
    yield smallest if difference.evidence is Evidence.SEPARATION else f"{chance}; {smallest}"


def _changed(difference: Difference) -> page.Table:
    sides = (
        (difference.new, "new", page.Tone.DOUBT, difference.head_runs),
        (difference.gone, "gone", page.Tone.BAD, difference.base_runs),
    )
    rows = tuple(
        (each.kind, each.name, page.Badge(word if each.runs == of else f"{word}, in {each.runs} of {of} runs", tone))
        for some, word, tone, of in sides
        for each in some
    )
    return page.Table(columns=(*page.words("kind"), *page.names("name"), *page.words("state")), rows=rows, key=2)


def _compared(difference: Difference, most: int | None) -> Iterator[page.Block]:
    shown = difference.compared[:most]
    values = page.numbers("base", "head", "change", "interval", "base n", "head n")
    columns = (*page.words("quantity"), *page.names("name"), *page.words(_sure(difference)), *values)
    yield page.Table(columns=columns, rows=tuple(map(_row, shown)), key=2)
    yield from page.left_out(len(difference.compared) - len(shown))


def _row(each: Compared) -> tuple[page.Cell, ...]:
    judged: page.Cell = page.ABSENT
    if each.differs:
        judged = page.Badge("longer", page.Tone.BAD) if each.ratio > 1 else page.Badge("shorter", page.Tone.GOOD)
    return (
        each.kind.value,
        each.name,
        judged,
        *(page.Amount(format_duration(ns), value=ns) for ns in (each.base_ns, each.head_ns)),
        page.Amount(format_ratio(each.ratio), value=each.ratio),
        f"{_bound(each.low)} … {_bound(each.high)}",
        *(page.Amount(str(count), value=count) for count in (each.base_count, each.head_count)),
    )


def _bound(ratio: float) -> str:
    return format_ratio(ratio) if 1 / _WIDEST < ratio < _WIDEST else page.ABSENT


def _paths(bases: Sequence[SeenRun], heads: Sequence[SeenRun]) -> Iterator[page.Section]:
    for name in dict.fromkeys(name for each in heads for name in each.waterfalls):
        if any(name in each.waterfalls for each in bases):
            sides = (_middle("base", bases, name), _middle("head", heads, name))
            yield page.Section(f"path {name}", tuple(show_waterfalls(*mark_growth(*sides), of=name)))


def _middle(side: str, runs: Sequence[SeenRun], path: str) -> Waterfall:
    found = sorted(
        (each.waterfalls[path] for each in runs if path in each.waterfalls), key=lambda each: each.duration_ns
    )
    which = f"median of {len(found)} runs" if len(found) > 1 else "median passage"
    return replace(found[(len(found) - 1) // 2], title=f"{side}, {which}")


def _plain(bases: Sequence[SeenRun], heads: Sequence[SeenRun], difference: Difference) -> dict[str, Any]:
    return {
        "base": [each.name for each in bases],
        "head": [each.name for each in heads],
        "evidence": difference.evidence.value,
        "remark": describe_evidence(difference),
        "new": [each._asdict() for each in difference.new],
        "gone": [each._asdict() for each in difference.gone],
        "in_some_runs": difference.in_some_runs,
        "compared": [
            {**vars(each), "ratio": each.ratio, "low": finite(each.low), "high": finite(each.high)}
            for each in difference.compared
        ],
    }
