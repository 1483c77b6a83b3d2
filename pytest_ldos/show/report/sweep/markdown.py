"""A sweep in GitHub's Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_ldos.base.text import Rendered
from pytest_ldos.show.report.markdown_parts import Markdown, bullets, escape, heading, join, table
from pytest_ldos.show.report.sweep.document import SweepReport
from pytest_ldos.show.report.sweep.tables import all_tables


def render(report: SweepReport) -> Rendered:
    """All cells: states, success, each metric; then what there is to know."""
    return join(_parts(report))


def _parts(report: SweepReport) -> Iterator[Markdown]:
    yield heading(2, f"Sweep {report.name}")
    for each in all_tables(report):
        yield heading(3, each.title)
        yield table(each.columns, each.rows, left=each.left)
    reasons = [f"{cell.label}: {cell.state}: {each}" for cell in report.cells for each in cell.reasons]
    if reasons:
        yield heading(3, "Reasons")
        yield bullets(reasons)
    yield bullets(report.notes)
    yield escape(f"{report.made_by} {report.made_at}")
