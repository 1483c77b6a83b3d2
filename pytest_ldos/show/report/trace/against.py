"""Traces of two versions side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, Final

from pytest_ldos.base.text import Rendered, counted, format_duration, format_ratio, listed
from pytest_ldos.show.page.formats import Format, finite, render, require_format, to_json
from pytest_ldos.show.page.model import (
    ABSENT,
    Amount,
    Badge,
    Block,
    Cell,
    Column,
    Kind,
    Page,
    Section,
    Table,
    Text,
    Tone,
    left_out,
)
from pytest_ldos.show.report.analysis import Analysis
from pytest_ldos.show.report.trace.passages import Waterfall, find_passages, mark_growth, show_waterfalls
from pytest_ldos.trace.ctf.stats import describe_incomplete
from pytest_ldos.trace.execution.coverage import name_missing
from pytest_ldos.trace.flow.difference import (
    ALPHA,
    FEWEST_RUNS,
    SMALLEST,
    Compared,
    Difference,
    Evidence,
    Run,
    Thing,
    compare_runs,
    sample_run,
)
from pytest_ldos.trace.flow.difference import Kind as Quantity

_MOST: Final = 15
_WIDEST: Final = 20.0
"""Ratio beyond which a bound is shown as infinite."""

_MOST_NAMES: Final = 3
"""Most traces or quantities named in a sentence."""

ONE_RUN: Final = (
    "One run of each was seen: differences between versions cannot be distinguished from differences between "
    "starts. Name several runs of each, or compare results of many starts with ldos compare."
)


@dataclass(frozen=True, kw_only=True)
class SeenRun:
    """Facts of one run to show; the trace itself is not kept.

    Attributes:
        name: of its trace.
        extent: number of events, and first and last publication, which identify a copy.
        waterfalls: of the median passage, by path.
    """

    name: str
    events: int
    damage: str
    extent: tuple[object, ...]
    run: Run
    waterfalls: Mapping[str, Waterfall]


def see_run(analysis: Analysis, *, drawn: bool) -> SeenRun:
    """Extracts the facts of a trace for the comparison.

    Args:
        drawn: True for a page with waterfalls.
    """
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
    """Renders nodes, topics and callbacks that are new or gone, and significant differences.

    Args:
        whole: show all rows; otherwise the most important, and the number of the others.

    Raises:
        Unavailable: see `require_format`.
    """
    require_format(kind)
    difference = compare_runs([each.run for each in bases], [each.run for each in heads])
    if kind is Format.JSON:
        return to_json(_plain(bases, heads, difference))
    most = None if whole or kind is not Format.TERMINAL else _MOST
    page = _compose(bases, heads, difference, most)
    if kind is Format.HTML:
        page = replace(page, blocks=(*page.blocks, *_paths(bases, heads)), is_interactive=True)
    return render(page, kind, width=width, color=color)


def _compose(bases: Sequence[SeenRun], heads: Sequence[SeenRun], difference: Difference, most: int | None) -> Page:
    differing = [each for each in difference.compared if each.differs]
    return Page(
        title=f"{'Trace' if len(heads) == 1 else 'Traces'} {_names(heads)} compared with {_names(bases)}",
        answer=f"{_answer(difference, differing)}{_grown(bases, heads, differing)}",
        setting=tuple(_setting(bases, heads, difference)),
        blocks=(
            Text(describe_evidence(difference), Tone.QUIET if difference.evidence is Evidence.RUNS else Tone.DOUBT),
            *_incomplete(difference),
            Section("New or gone", (_changed(difference),)),
            Section("Times and rates", tuple(_compared(difference, most))),
        ),
        made=f"pytest-ldos {version('pytest-ldos')}",
    )


def _names(runs: Sequence[SeenRun]) -> str:
    return listed([each.name for each in runs], _MOST_NAMES)


def describe_evidence(difference: Difference) -> str:
    """Sentences on the evidence of a difference, and its limits."""
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


def _incomplete(difference: Difference) -> Iterator[Text]:
    if difference.in_some_runs:
        names = listed(difference.in_some_runs, _MOST_NAMES)
        yield Text(f"not compared, as not every run has enough values: {names}", Tone.DOUBT)


def _answer(difference: Difference, differing: Sequence[Compared]) -> str:
    largest = f"; the largest: {_describe(differing[0])}" if differing else ""
    sure = "in every run" if difference.evidence is Evidence.SEPARATION else "beyond chance"
    return (
        f"{counted(len(differing), 'time or rate differs', 'times or rates differ')} {sure}, "
        f"{len(difference.new)} new, {len(difference.gone)} gone{largest}"
    )


def _grown(bases: Sequence[SeenRun], heads: Sequence[SeenRun], differing: Sequence[Compared]) -> str:
    """The part with the largest growth in the path that differs most, if passages are drawn."""
    for path in (each.name for each in differing if each.kind is Quantity.PATH and each.ratio > 1):
        if all(any(path in each.waterfalls for each in side) for side in (bases, heads)):
            _, grown = mark_growth(_middle("base", bases, path), _middle("head", heads, path))
            name = next((part.name for part in grown.parts if part.is_marked), "")
            return f"; in path {path}, most of it in {name}" if name else ""
    return ""


def _describe(each: Compared) -> str:
    return f"{each.kind} {each.name}, {format_ratio(each.ratio)}"


def _setting(bases: Sequence[SeenRun], heads: Sequence[SeenRun], difference: Difference) -> Iterator[str]:
    for what, runs in (("base", bases), ("head", heads)):
        yield f"{what}: {'; '.join(map(_describe_run, runs))}"
    smallest = f"smallest difference reported: {100 * SMALLEST:g} %"
    chance = f"probability of any false difference: {100 * ALPHA:g} %"
    yield smallest if difference.evidence is Evidence.SEPARATION else f"{chance}; {smallest}"


def _describe_run(run: SeenRun) -> str:
    return f"{run.name}, {counted(run.events, 'event')}{f' ({run.damage})' if run.damage else ''}"


def _changed(difference: Difference) -> Table:
    sides = (
        (difference.new, "new", Tone.DOUBT, difference.head_runs),
        (difference.gone, "gone", Tone.BAD, difference.base_runs),
    )
    rows = tuple(
        (each.kind, each.name, Badge(_state(each, word, of), tone)) for some, word, tone, of in sides for each in some
    )
    columns = (Column("kind", Kind.WORD), Column("name", Kind.NAME), Column("state", Kind.WORD))
    return Table(columns=columns, rows=rows, key=2)


def _state(thing: Thing, word: str, runs: int) -> str:
    return word if thing.runs == runs else f"{word}, in {thing.runs} of {runs} runs"


def _compared(difference: Difference, most: int | None) -> Iterator[Block]:
    shown = difference.compared[:most]
    columns = (
        Column("quantity", Kind.WORD),
        Column("name", Kind.NAME),
        Column("in every run" if difference.evidence is Evidence.SEPARATION else "beyond chance", Kind.WORD),
        *map(Column, ("base", "head", "change", "interval", "base n", "head n")),
    )
    yield Table(columns=columns, rows=tuple(map(_row, shown)), key=2)
    yield from left_out(len(difference.compared) - len(shown))


def _row(each: Compared) -> tuple[Cell, ...]:
    judged: Cell = ABSENT
    if each.differs:
        judged = Badge("longer", Tone.BAD) if each.ratio > 1 else Badge("shorter", Tone.GOOD)
    bounds = f"{_bound(each.low)} … {_bound(each.high)}"
    return (
        each.kind.value,
        each.name,
        judged,
        Amount(format_duration(each.base_ns), value=each.base_ns),
        Amount(format_duration(each.head_ns), value=each.head_ns),
        Amount(format_ratio(each.ratio), value=each.ratio),
        bounds,
        Amount(str(each.base_count), value=each.base_count),
        Amount(str(each.head_count), value=each.head_count),
    )


def _bound(ratio: float) -> str:
    return format_ratio(ratio) if 1 / _WIDEST < ratio < _WIDEST else ABSENT


def _paths(bases: Sequence[SeenRun], heads: Sequence[SeenRun]) -> Iterator[Section]:
    """Waterfalls of the median passage of each common path, base above head."""
    for name in dict.fromkeys(name for each in heads for name in each.waterfalls):
        if any(name in each.waterfalls for each in bases):
            sides = (_middle("base", bases, name), _middle("head", heads, name))
            yield Section(f"path {name}", tuple(show_waterfalls(*mark_growth(*sides), of=name)))


def _middle(side: str, runs: Sequence[SeenRun], path: str) -> Waterfall:
    """The median passage of the median run."""
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
            {
                "kind": each.kind.value,
                "name": each.name,
                "base_ns": each.base_ns,
                "head_ns": each.head_ns,
                "base_count": each.base_count,
                "head_count": each.head_count,
                "ratio": each.ratio,
                "low": finite(each.low),
                "high": finite(each.high),
                "differs": each.differs,
            }
            for each in difference.compared
        ],
    }
