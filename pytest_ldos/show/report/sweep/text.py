"""A sweep for a terminal."""

from __future__ import annotations

from typing import Final

from pytest_ldos.base.text import Rendered
from pytest_ldos.show.report.console import Line, line, print_to_text, wrapped
from pytest_ldos.show.report.sweep.document import SweepReport
from pytest_ldos.show.report.sweep.tables import PlainTable, all_tables
from pytest_ldos.show.report.tables import plain_table

_NARROWEST: Final = 80


def render(report: SweepReport, *, width: int, color: bool) -> Rendered:
    """All cells: states, success, each metric; then what there is to know."""
    width = max(width, _NARROWEST)
    lines = [line(f"sweep {report.name}", style="bold")]
    for table in all_tables(report):
        lines += [line(), *(_sentences(table, width) if table.is_prose else _table(table, width, key=len(report.axes)))]
    reasons = [(cell, reason) for cell in report.cells for reason in cell.reasons]
    if reasons:
        lines.append(line())
    for cell, reason in reasons:
        lines += wrapped(f"{cell.label}: {cell.state}: {reason}", width, indent=2)
    lines.append(line())
    for note in report.notes:
        lines += wrapped(note, width, style="dim")
    return print_to_text(lines, color=color)


def _sentences(table: PlainTable, width: int) -> list[Line]:
    """A row a sentence: one too long for a table would leave no room for what it is about."""
    lines = [line(table.title, style="bold")]
    for row in table.rows:
        *names, words = row
        lines += wrapped(f"{', '.join(names)}: {words}", width, indent=2)
    return lines


def _table(table: PlainTable, width: int, *, key: int) -> list[Line]:
    body = plain_table(table.columns, table.rows, width=width, left=table.left, key=key)
    return [line(table.title, style="bold"), *body]
