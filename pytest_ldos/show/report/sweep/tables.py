"""The tables of a sweep, as plain cells that all formats share; nothing in them is made safe for any."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pytest_ldos.base.units import format_quantity
from pytest_ldos.campaign.cells import show_value
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.show.report.sweep.document import CellReport, Located, MetricTitle, SweepReport

_IN_DATA_ALONE: Final = frozenset(metric.name for metric in METRICS.values() if not metric.in_sweeps)
"""Metrics of ours that only JSON and CSV have."""

_NOTHING: Final = "–"
_PROOF: Final = "as measured"


@dataclass(frozen=True)
class PlainTable:
    """Words in rows.

    Attributes:
        left: columns of words; others hold numbers.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: frozenset[str] = frozenset()

    @property
    def is_prose(self) -> bool:
        """Whether its last column holds sentences."""
        return self.columns[-1] == _PROOF


def shown_metrics(report: SweepReport) -> list[MetricTitle]:
    """The metrics that are told: ours, in short, and all of a user's own; none that no cell has."""
    told = (each for each in report.metrics if each.name not in _IN_DATA_ALONE)
    return [each for each in told if any(_has(cell, each) for cell in report.cells)]


def _has(cell: CellReport, metric: MetricTitle) -> bool:
    found = cell.metrics.get(metric.name)
    return found is not None and found.values > 0


def overview(report: SweepReport) -> PlainTable:
    """Every cell: state and success, and the verdict where cells are tests."""
    has_verdicts = any(cell.verdict for cell in report.cells)
    columns = [*_names(report), "state", "succeeded", "95 %", *(["verdict"] if has_verdicts else [])]
    rows = [
        [
            *values_of(cell),
            cell.state,
            succeeded(cell),
            success_interval(cell),
            *([cell.verdict or _NOTHING] if has_verdicts else []),
        ]
        for cell in report.cells
    ]
    return PlainTable(f"cells of {report.scenario}", columns, rows, frozenset({"state", "verdict"}))


def load_table(report: SweepReport) -> PlainTable | None:
    """What was applied, by its proof; ``None`` where nothing was."""
    rows = [[*values_of(cell), proof] for cell in report.cells for proof in cell.loads]
    return PlainTable("loads", [*_names(report), _PROOF], rows, frozenset({_PROOF})) if rows else None


def all_tables(report: SweepReport) -> Iterator[PlainTable]:
    """Every table, in the order in which they are shown."""
    yield overview(report)
    loads = load_table(report)
    if loads is not None:
        yield loads
    yield from metric_tables(report)


def _names(report: SweepReport) -> list[str]:
    return [axis.name for axis in report.axes]


def metric_tables(report: SweepReport) -> Iterator[PlainTable]:
    """One a metric: median with interval, ratio to the reference with interval."""
    for metric in shown_metrics(report):
        columns = [*_names(report), "median", "95 %", "ratio", "95 % of ratio", ""]
        rows = [[*values_of(cell), *_numbers(cell, metric)] for cell in report.cells]
        yield PlainTable(f"{metric.name} {metric.title}", columns, rows, frozenset({""}))


def _numbers(cell: CellReport, metric: MetricTitle) -> list[str]:
    found = cell.metrics.get(metric.name)
    mark = "" if cell.is_valid else cell.state
    if found is None or not found.values:
        return [_NOTHING, "", "", "", mark]
    return [median_of(found, metric), interval_of(found), ratio_of(cell, found), ratio_interval_of(found), mark]


def values_of(cell: CellReport) -> list[str]:
    return [show_value(value) for value in cell.values]


def succeeded(cell: CellReport) -> str:
    return f"{cell.successes} of {cell.trials}" if cell.trials else _NOTHING


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
    low, high = (_NOTHING if each is None else f"{each:.3g}" for each in (found.ratio_low, found.ratio_high))
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
