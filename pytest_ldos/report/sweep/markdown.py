"""A sweep in GitHub's Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_ldos.report.markdown import escape
from pytest_ldos.report.sweep.document import SweepReport
from pytest_ldos.report.sweep.tables import PlainTable, metric_tables, overview


def render(report: SweepReport) -> str:
    """All cells: states, success, each metric; then what there is to know."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: SweepReport) -> Iterator[str]:
    yield f"## Sweep {escape(report.name)}"
    for table in (overview(report), *metric_tables(report)):
        yield from ("", f"### {escape(table.title)}", "", *_table(table))
    reasons = [f"- {escape(f'{cell.label}: {cell.state}: {each}')}" for cell in report.cells for each in cell.reasons]
    if reasons:
        yield from ("", "### Reasons", "", *reasons)
    yield from ("", *(f"- {escape(note)}" for note in report.notes))
    yield from ("", escape(f"{report.made_by} {report.made_at}"))


def _table(table: PlainTable) -> Iterator[str]:
    yield _row(table.columns)
    sides = (":--" if name in table.left or not number else "--:" for number, name in enumerate(table.columns))
    yield _row(tuple(sides), raw=True)
    for row in table.rows:
        yield _row(row)


def _row(cells: Sequence[str], *, raw: bool = False) -> str:
    return f"| {' | '.join(each if raw else escape(each) for each in cells)} |"
