"""A sweep for programs: JSON, and CSV with a row for each cell and metric."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from pytest_ldos.base.text import Rendered
from pytest_ldos.show.page.data_text import to_csv, to_json
from pytest_ldos.show.report.sweep.document import CellReport, SweepReport

KIND: Final = "pytest-ldos sweep report"
SCHEMA: Final = 1

_NUMBERS: Final = ("median", "low", "high", "ratio", "ratio_low", "ratio_high", "values")


def render_json(report: SweepReport) -> Rendered:
    """One object; what is infinite or absent is null."""
    return to_json({"kind": KIND, "schema": SCHEMA, **asdict(report)})


def render_csv(report: SweepReport) -> Rendered:
    """A row for each cell and metric; cells without any have one row."""
    addresses = (axis.address for axis in report.axes)
    titles = (*addresses, "state", "reason", "trials", "successes", "metric", "unit", *_NUMBERS)
    return to_csv(titles, (row for cell in report.cells for row in _rows(report, cell)))


def _rows(report: SweepReport, cell: CellReport) -> Iterator[tuple[object, ...]]:
    shared = (*cell.values, cell.state, "; ".join(cell.reasons), cell.trials, cell.successes)
    rows = [
        (*shared, each.name, each.unit, *asdict(found).values())
        for each in report.metrics
        if (found := cell.metrics.get(each.name)) is not None
    ]
    yield from rows or [(*shared, "", "", *[""] * len(_NUMBERS))]
