"""Two traces side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any, Final

from pytest_ldos.base.text import Rendered
from pytest_ldos.base.units import counted, format_duration, format_ratio
from pytest_ldos.show.page.data_text import finite, to_json
from pytest_ldos.show.page.formats import Format, render, require_format
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
from pytest_ldos.show.report.trace.passages import PathPassages, find_passages, show_waterfalls
from pytest_ldos.show.report.trace.waterfall import mark_growth
from pytest_ldos.trace.ctf.stats import describe_damage
from pytest_ldos.trace.flow.difference import ALPHA, SMALLEST, Compared, Difference, compare_flows

_MOST: Final = 15
_WIDEST: Final = 20.0
"""Ratio beyond which a bound says nothing."""

ONE_RUN: Final = (
    "One run of each was seen: what differs between two starts of the same version is not told apart from what "
    "differs between the versions. `ldos compare` judges results of many starts."
)


def render_against(
    base: Analysis,
    head: Analysis,
    kind: Format = Format.TERMINAL,
    *,
    width: int = 100,
    color: bool = False,
    whole: bool = True,
) -> Rendered:
    """Nodes, topics and callbacks that are new or gone, and what differs beyond chance.

    Args:
        whole: all rows; else the most important, with the number of the others.

    Raises:
        Unavailable: see `require_format`.
    """
    require_format(kind)
    difference = compare_flows(base.flow, head.flow, head.paths)
    if kind is Format.JSON:
        return to_json(_plain(base, head, difference))
    most = None if whole or kind is not Format.TERMINAL else _MOST
    page = _compose(base, head, difference, most)
    if kind is Format.HTML:
        page = replace(page, blocks=(*page.blocks, *_paths(base, head)), is_interactive=True)
    return render(page, kind, width=width, color=color)


def _compose(base: Analysis, head: Analysis, difference: Difference, most: int | None) -> Page:
    differing = [each for each in difference.compared if each.differs]
    return Page(
        title=f"Trace {head.name} compared with {base.name}",
        answer=_answer(difference, differing),
        setting=tuple(_setting(base, head)),
        blocks=(
            Text(ONE_RUN, Tone.DOUBT),
            Section("New or gone", (_changed(difference),)),
            Section("Times and rates", tuple(_compared(difference.compared, most))),
        ),
        made=f"pytest-ldos {version('pytest-ldos')}",
    )


def _answer(difference: Difference, differing: Sequence[Compared]) -> str:
    largest = f"; the largest: {_describe(differing[0])}" if differing else ""
    return (
        f"{counted(len(differing), 'time or rate differs', 'times or rates differ')} beyond chance, "
        f"{len(difference.new)} new, {len(difference.gone)} gone{largest}"
    )


def _describe(each: Compared) -> str:
    return f"{each.kind} {each.name}, {format_ratio(each.ratio)}"


def _setting(base: Analysis, head: Analysis) -> Iterator[str]:
    for what, each in (("base", base), ("head", head)):
        damage = describe_damage(each.flow.model.stats)
        yield f"{what}: {each.name}, {counted(each.flow.model.stats.events, 'event')}{f'; {damage}' if damage else ''}"
    yield f"probability of any false difference: {100 * ALPHA:g} %; smallest difference reported: {100 * SMALLEST:g} %"


def _changed(difference: Difference) -> Table:
    rows = [(*each, Badge("new", Tone.DOUBT)) for each in difference.new]
    rows += [(*each, Badge("gone", Tone.BAD)) for each in difference.gone]
    columns = (Column("kind", Kind.WORD), Column("name", Kind.NAME), Column("state", Kind.WORD))
    return Table(columns=columns, rows=tuple(rows), key=2)


def _compared(compared: Sequence[Compared], most: int | None) -> Iterator[Block]:
    shown = compared[:most]
    columns = (
        Column("quantity", Kind.WORD),
        Column("name", Kind.NAME),
        Column("beyond chance", Kind.WORD),
        *map(Column, ("base", "head", "change", "interval", "base n", "head n")),
    )
    yield Table(columns=columns, rows=tuple(map(_row, shown)), key=2)
    yield from left_out(len(compared) - len(shown))


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


def _paths(base: Analysis, head: Analysis) -> Iterator[Section]:
    """Waterfalls of the median passage of each path that both have, base above head."""
    ones, others = (
        {each.instances.path.name: each for each in find_passages(side.flow, head.paths, side.thread_states)}
        for side in (base, head)
    )
    yield from (_path(name, ones[name], other) for name, other in others.items() if name in ones)


def _path(name: str, base: PathPassages, head: PathPassages) -> Section:
    one, other = base.waterfall("base, median passage", 0.5), head.waterfall("head, median passage", 0.5)
    return Section(f"path {name}", tuple(show_waterfalls(*mark_growth(one, other))))


def _plain(base: Analysis, head: Analysis, difference: Difference) -> dict[str, Any]:
    return {
        "base": base.name,
        "head": head.name,
        "remark": ONE_RUN,
        "new": [{"kind": kind, "name": name} for kind, name in difference.new],
        "gone": [{"kind": kind, "name": name} for kind, name in difference.gone],
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
