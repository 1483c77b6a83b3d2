"""Tables of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pytest_ldos.base.units import format_quantity
from pytest_ldos.campaign.cells import show_value
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.show.page.model import ABSENT, Badge, Cell, Column, Kind, Table, Tone
from pytest_ldos.show.report.sweep.document import VALID, CellReport, Located, MetricTitle, SweepReport

_IN_DATA_ALONE: Final = frozenset(metric.name for metric in METRICS.values() if not metric.in_sweeps)
"""Metrics of ours that only JSON and CSV have."""

_TONES: Final = {VALID: Tone.GOOD, **dict.fromkeys(("broken", "invalid", "infra"), Tone.BAD)}
"""Tones of states; the others are doubtful."""


def shown_metrics(report: SweepReport) -> list[MetricTitle]:
    """The metrics that are told: ours, in short, and all of a user's own; none that no cell has."""
    told = (each for each in report.metrics if each.name not in _IN_DATA_ALONE)
    return [each for each in told if any(_has(cell, each) for cell in report.cells)]


def _has(cell: CellReport, metric: MetricTitle) -> bool:
    found = cell.metrics.get(metric.name)
    return found is not None and found.values > 0


def overview(report: SweepReport) -> Table:
    """Every cell: state and success, and the verdict where cells are tests."""
    has_verdicts = any(cell.verdict for cell in report.cells)
    measured = (Column("state", Kind.WORD), Column("succeeded"), Column("95 %"))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            *values_of(cell),
            Badge(cell.state, _TONES.get(cell.state, Tone.DOUBT)),
            succeeded(cell),
            success_interval(cell),
            *([cell.verdict or ABSENT] if has_verdicts else []),
        )
        for cell in report.cells
    )
    verdict = [Column("verdict", Kind.WORD)] if has_verdicts else []
    return _table(report, "", (*measured, *verdict), rows)


def load_table(report: SweepReport) -> Table:
    """Proofs of what was applied."""
    rows = tuple((*values_of(cell), proof) for cell in report.cells for proof in cell.loads)
    return _table(report, "loads", (Column("as measured", Kind.PROSE),), rows)


def metric_table(report: SweepReport, metric: MetricTitle) -> Table:
    """Median with interval, and ratio to the reference with interval."""
    numbers = tuple(map(Column, ("median", "95 %", "ratio", "95 % of ratio")))
    rows = tuple((*values_of(cell), *_numbers(cell, metric)) for cell in report.cells)
    return _table(report, "", (*numbers, Column("", Kind.WORD)), rows)


def _table(report: SweepReport, title: str, columns: tuple[Column, ...], rows: tuple[tuple[Cell, ...], ...]) -> Table:
    axes = (Column(axis.name, Kind.NAME) for axis in report.axes)
    return Table(title=title, columns=(*axes, *columns), rows=rows, key=len(report.axes))


def _numbers(cell: CellReport, metric: MetricTitle) -> list[str]:
    found = cell.metrics.get(metric.name)
    mark = "" if cell.is_valid else cell.state
    if found is None or not found.values:
        return [ABSENT, "", "", "", mark]
    return [median_of(found, metric), interval_of(found), ratio_of(cell, found), ratio_interval_of(found), mark]


def values_of(cell: CellReport) -> list[str]:
    return [show_value(value) for value in cell.values]


def succeeded(cell: CellReport) -> str:
    return f"{cell.successes} of {cell.trials}" if cell.trials else ABSENT


def success_interval(cell: CellReport) -> str:
    return f"{100 * cell.success_low:.0f} … {100 * cell.success_high:.0f} %" if cell.trials else ""


def median_of(found: Located, metric: MetricTitle) -> str:
    return "failed" if found.median is None else format_quantity(found.median, metric.unit)


def interval_of(found: Located) -> str:
    if found.low is None:
        return ""
    high = "∞" if found.high is None else format_quantity(found.high, "")
    return f"{format_quantity(found.low, '')} … {high}"


def ratio_of(cell: CellReport, found: Located) -> str:
    if cell.is_reference:
        return "1"
    return "" if found.ratio is None else f"× {found.ratio:.3g}"


def ratio_interval_of(found: Located) -> str:
    if found.ratio_low is None and found.ratio_high is None:
        return ""
    low, high = (ABSENT if each is None else f"{each:.3g}" for each in (found.ratio_low, found.ratio_high))
    return f"{low} … {high}"


def describe_cell(cell: CellReport, metrics: Sequence[MetricTitle]) -> str:
    """One line as soon as a cell was measured."""
    if not cell.trials:
        return f"{cell.label}: {cell.state}: {'; '.join(cell.reasons)}"
    medians = [
        f"{metric.name} {median_of(found, metric)}"
        for metric in metrics
        if (found := cell.metrics.get(metric.name)) is not None and found.values
    ]
    state = "" if cell.is_valid else f"{cell.state}: {'; '.join(cell.reasons)}; "
    return f"{cell.label}: {state}{', '.join([f'{succeeded(cell)} succeeded', *medians])}"
