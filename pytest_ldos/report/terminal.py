"""A document for a terminal or a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pytest_ldos.gate.verdict import Verdict
from pytest_ldos.report.console import print_to_text
from pytest_ldos.report.document import Document, MetricRow, Section
from pytest_ldos.report.text import visible

_STYLES: Final = {
    Verdict.PASSED: "green",
    Verdict.IMPROVED: "bold green",
    Verdict.REGRESSED: "bold red",
    Verdict.INVALID: "bold red",
    Verdict.INFRA: "bold red",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.NO_BASELINE: "yellow",
    Verdict.NOT_COMPARABLE: "yellow",
}

_NARROWEST: Final = 80
_GAP: Final = 2


@dataclass(frozen=True)
class _Column:
    """A column of the table.

    Attributes:
        rank: in which order columns get a place where not all fit; 0 is the first.
    """

    title: str
    cells: tuple[Text, ...]
    rank: int
    justify: Literal["left", "right"] = "right"

    @property
    def width(self) -> int:
        return max(cell_len(self.title), *(cell.cell_len for cell in self.cells)) + _GAP

    @property
    def is_empty(self) -> bool:
        return not any(cell.plain for cell in self.cells)


def render(document: Document, *, width: int, color: bool) -> str:
    """The whole document; tables have at most `width` columns, other lines are not broken."""
    width = max(width, _NARROWEST)
    parts: list[RenderableType] = [_line(line, style="dim") for line in document.header]
    for section in document.sections:
        parts += [Text(), *_render_section(section, width)]
    return print_to_text(Group(*parts), width=width, color=color)


def _line(text: str, *, style: str = "") -> Text:
    """A line that stays whole: paths in it are to be copied."""
    return Text(visible(text), style=style, no_wrap=True, overflow="ignore")


def _render_section(section: Section, width: int) -> list[RenderableType]:
    verdict = () if section.verdict is None else (_verdict(section.verdict), "; ")
    title = Text.assemble((visible(section.scenario), "bold"), ": ", *verdict, section.success, no_wrap=True)
    reasons = [_line(f"  {line}") for line in section.reasons]
    absent = [_line(f"  {row.name}: {row.note}", style="yellow") for row in section.rows if row.note]
    notes = [_line(f"  {line}", style="dim") for line in section.notes]
    tables = [_table(section.rows, width)] if section.rows else []
    sources = [_line(f"  {line}", style="dim") for line in section.sources]
    explained = [_line(f"  {line}") for line in section.explanations]
    return [title, *reasons, *tables, *sources, *absent, *explained, *notes]


def _table(rows: Sequence[MetricRow], width: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    columns = _choose(_columns(rows), width)
    for column in columns:
        table.add_column(column.title, justify=column.justify, no_wrap=True)
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*cells)
    return table


def _columns(rows: Sequence[MetricRow]) -> list[_Column]:
    def texts(name: str) -> tuple[Text, ...]:
        return tuple(Text(visible(getattr(row, name))) for row in rows)

    verdicts = tuple(Text("") if row.verdict is None else _verdict(row.verdict) for row in rows)
    names = tuple(Text(f"  {row.name}") for row in rows)
    return [
        _Column("", names, 0, "left"),
        _Column("", texts("title"), 8, "left"),
        _Column("median", texts("measured"), 2),
        _Column("CV", texts("cv"), 6),
        _Column("adjusted", texts("adjusted"), 7),
        _Column("baseline", texts("baseline"), 5),
        _Column("change", texts("change"), 1),
        _Column("interval", texts("interval"), 3),
        _Column("detectable", texts("detectable"), 4),
        _Column("verdict", verdicts, 1, "left"),
    ]


def _choose(columns: Sequence[_Column], width: int) -> list[_Column]:
    """The columns that fit, the more important ones first; in the order of display."""
    chosen: list[_Column] = []
    left = width
    for column in sorted(columns, key=lambda column: column.rank):
        if not column.is_empty and column.width <= left:
            chosen.append(column)
            left -= column.width
    return [column for column in columns if column in chosen]


def _verdict(verdict: Verdict) -> Text:
    return Text(verdict.value, style=_STYLES[verdict])
