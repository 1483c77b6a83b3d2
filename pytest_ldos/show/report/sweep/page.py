"""Page of a sweep."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Final

from pytest_ldos.show.page.model import Block, Bullets, Drawing, Figure, Legend, Page, Section, Tone
from pytest_ldos.show.report.sweep.document import LOAD_NUMBERS, LoadNumber, MetricTitle, SweepReport
from pytest_ldos.show.report.sweep.tables import load_table, metric_table, overview, shown_metrics


def compose_page(report: SweepReport) -> Page:
    """All cells: states, success, each metric; then what there is to know."""
    commit = [f"commit {report.commit}"] if report.commit else []
    return Page(
        title=f"ldos sweep {report.name}",
        setting=(*commit, *([report.stack] if report.stack else [])),
        blocks=(
            Section(f"Cells of {report.scenario}", (overview(report), load_table(report), _reasons(report))),
            Section("Metrics over the axes", tuple(_metrics(report))),
            Section("How to read this", (Bullets(report.notes, Tone.QUIET), Legend(_MEANINGS))),
        ),
        made=f"{report.made_by} {report.made_at}",
    )


def _reasons(report: SweepReport) -> Section:
    reasons = (f"{cell.label}: {cell.state}: {each}" for cell in report.cells for each in cell.reasons)
    return Section("Reasons", (Bullets(tuple(reasons)),))


def _metrics(report: SweepReport) -> Iterator[Block]:
    """A figure each; of a load's number where more than one cell has it."""
    yield Drawing(lambda: _plots().draw_lines(report))
    yield Figure(title="success rate", drawings=(Drawing(lambda: _plots().draw_success(report)),))
    for number in LOAD_NUMBERS:
        if sum(number.key in cell.load_numbers for cell in report.cells) > 1:
            yield _load_figure(report, number)
    for metric in shown_metrics(report):
        yield _metric_figure(report, metric)


def _metric_figure(report: SweepReport, metric: MetricTitle) -> Figure:
    drawing = Drawing(lambda: _plots().draw_metric(report, metric))
    return Figure(title=f"{metric.name} {metric.title}", drawings=(drawing,), table=metric_table(report, metric))


def _load_figure(report: SweepReport, number: LoadNumber) -> Figure:
    return Figure(title=number.title, drawings=(Drawing(lambda: _plots().draw_load(report, number)),))


def _plots() -> ModuleType:
    from pytest_ldos.show.report.sweep import plots  # noqa: PLC0415 - its library is optional

    return plots


_MEANINGS: Final = (
    ("●", "the median of a cell's trials, with its interval; an interval that ends at the edge has no such end"),
    (
        "✕",
        "a cell that is not valid: its load or all its trials were not reached; below the axis: no number",
    ),
    ("broken", "the arm could not go on beside the load; its last trial, whose way home failed, counts as failed"),
    ("failed", "more than half of the trials failed, and a failed one counts as slower than any"),
    ("ratio", "to the first valid cell, as measured; its interval knows how starts differ where there were several"),
    ("log", "values that span a decade or more are drawn to a logarithmic scale"),
)
