"""A sweep for programs: JSON, and CSV with a row for each cell and metric."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from pytest_ldos.report.sweep.document import CellReport, SweepReport
from pytest_ldos.text import one_line

KIND: Final = "pytest-ldos sweep report"
SCHEMA: Final = 1

_FORMULA: Final = ("=", "+", "-", "@")
"""What a spreadsheet takes for more than text."""


def render_json(report: SweepReport) -> str:
    """One object; what is infinite or absent is null."""
    return json.dumps({"kind": KIND, "schema": SCHEMA, **asdict(report)}, indent=1, allow_nan=False) + "\n"


def render_csv(report: SweepReport) -> str:
    """A row for each cell and metric; cells without any have one row."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    numbers = ("median", "low", "high", "ratio", "ratio_low", "ratio_high", "values")
    writer.writerow(
        [*(axis.address for axis in report.axes), "state", "reason", "trials", "successes", "metric", "unit", *numbers]
    )
    for cell in report.cells:
        shared = [*(_safe(value) for value in cell.values), cell.state, _safe("; ".join(cell.reasons))]
        for name, unit, found in _metrics(report, cell):
            writer.writerow([*shared, cell.trials, cell.successes, _safe(name), _safe(unit), *found])
    return sink.getvalue()


def _metrics(report: SweepReport, cell: CellReport) -> Iterator[tuple[str, str, list[object]]]:
    rows = [
        (each.name, each.unit, list(asdict(found).values()))
        for each in report.metrics
        if (found := cell.metrics.get(each.name)) is not None
    ]
    yield from rows or [("", "", [""] * 7)]


def _safe(value: object) -> object:
    """Numbers as they are; text that no spreadsheet runs."""
    if not isinstance(value, str):
        return value
    text = one_line(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
