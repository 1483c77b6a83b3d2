"""A sweep for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from pytest_ldos.report.console import print_to_text
from pytest_ldos.report.sweep.document import SweepReport
from pytest_ldos.report.sweep.tables import PlainTable, all_tables
from pytest_ldos.report.tables import line, plain_table, wrapped
from pytest_ldos.text import one_line


def render(report: SweepReport, *, width: int, color: bool) -> str:
    """All cells: states, success, each metric; then what there is to know."""
    parts: list[RenderableType] = [line(f"sweep {report.name}", "bold")]
    for table in all_tables(report):
        parts += [Text(), *(_sentences(table, width) if table.is_prose else _table(table))]
    reasons = [(cell, reason) for cell in report.cells for reason in cell.reasons]
    if reasons:
        parts.append(Text())
    for cell, reason in reasons:
        parts += wrapped(one_line(f"{cell.label}: {cell.state}: {reason}"), width, indent=2)
    parts.append(Text())
    for note in report.notes:
        parts += wrapped(note, width, style="dim")
    return print_to_text(Group(*parts), width=max(width, 80), color=color)


def _sentences(table: PlainTable, width: int) -> list[RenderableType]:
    """A row a sentence: one too long for a table would leave no room for what it is about."""
    parts: list[RenderableType] = [line(table.title, "bold")]
    for row in table.rows:
        *names, words = (one_line(cell) for cell in row)
        parts += wrapped(f"{', '.join(names)}: {words}", width, indent=2)
    return parts


def _table(table: PlainTable) -> list[RenderableType]:
    columns, *rows = [[one_line(cell) for cell in row] for row in (table.columns, *table.rows)]
    return [line(table.title, "bold"), plain_table(columns, rows, left=table.left)]
