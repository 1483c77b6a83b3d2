"""Page and tables of a sweep, in every format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.text import Rendered, format_quantity
from pytest_ldos.campaign.cells import show_value
from pytest_ldos.judge.summary import Located
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.show.page.formats import Format, format_of, render, require_format
from pytest_ldos.show.page.model import (
    ABSENT,
    Badge,
    Block,
    Bullets,
    Cell,
    Column,
    Drawing,
    Figure,
    Kind,
    Legend,
    Page,
    Section,
    Table,
    Tone,
)
from pytest_ldos.show.report.sweep.document import (
    LOAD_NUMBERS,
    VALID,
    CellReport,
    LoadNumber,
    MetricTitle,
    SweepReport,
    render_csv,
    render_json,
)

_IN_DATA_ALONE: Final = frozenset(metric.name for metric in METRICS.values() if not metric.in_sweeps)
"""Built-in metrics that are only in JSON and CSV."""

_TONES: Final = {VALID: Tone.GOOD, **dict.fromkeys(("broken", "invalid", "infra"), Tone.BAD)}
"""Tones of states; other states are doubtful."""


def shown_metrics(report: SweepReport) -> list[MetricTitle]:
    """The shown metrics: a selection of the built-in ones and all of a user's own, if some cell has them."""
    shown = (each for each in report.metrics if each.name not in _IN_DATA_ALONE)
    return [each for each in shown if any(_has(cell, each) for cell in report.cells)]


def _has(cell: CellReport, metric: MetricTitle) -> bool:
    found = cell.metrics.get(metric.name)
    return found is not None and found.values > 0


def overview(report: SweepReport) -> Table:
    """Every cell with state and success, and the verdict if cells are tests."""
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
    """Proofs of the applied loads."""
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
    """One line on a measured cell."""
    if not cell.trials:
        return f"{cell.label}: {cell.state}: {'; '.join(cell.reasons)}"
    medians = [
        f"{metric.name} {median_of(found, metric)}"
        for metric in metrics
        if (found := cell.metrics.get(metric.name)) is not None and found.values
    ]
    state = "" if cell.is_valid else f"{cell.state}: {'; '.join(cell.reasons)}; "
    return f"{cell.label}: {state}{', '.join([f'{succeeded(cell)} succeeded', *medians])}"


def compose_page(report: SweepReport) -> Page:
    """All cells with states, success and each metric, then remarks."""
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
    """A figure for each metric, and for each load's number that several cells have."""
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
    from pytest_ldos.show.report.sweep import figure as plots  # noqa: PLC0415 - its library is optional

    return plots


_MEANINGS: Final = (
    ("●", "the median of a cell's trials, with its interval; an interval that ends at the edge has no such end"),
    (
        "✕",
        "a cell that is not valid: its load or all its trials were not reached; below the axis: no number",
    ),
    ("broken", "the arm could not continue under the load; its last trial, whose way home failed, counts as failed"),
    ("failed", "more than half of the trials failed, and a failed one counts as slower than any"),
    (
        "ratio",
        "to the first valid cell, as measured; its interval includes the variation between several starts",
    ),
    ("log", "values that span a decade or more are drawn to a logarithmic scale"),
)


SUFFIXES: Final = (".html", ".md", ".json", ".csv")
_DATA: Final = {".json": render_json, ".csv": render_csv}


def require_suffix(file: Path) -> None:
    """Refuses, before measuring, a file that could not be written.

    Raises:
        ConfigurationError: an unknown suffix, or its folder does not exist.
        Unavailable: the format's library is not installed.
    """
    if file.suffix not in SUFFIXES:
        raise ConfigurationError(f"{file} has no format of a sweep", remedy=f"let it end with {', '.join(SUFFIXES)}")
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise ConfigurationError(f"{file} cannot be written", remedy="name a file in a folder that exists")
    if file.suffix == ".html":
        require_format(Format.HTML)


def render_for(report: SweepReport, file: Path) -> Rendered:
    """The text of a file, in the format of its name; see `require_suffix`."""
    if file.suffix in _DATA:
        return _DATA[file.suffix](report)
    return render(compose_page(report), format_of(file))


def render_text(report: SweepReport, *, width: int, color: bool) -> Rendered:
    """The report for a terminal."""
    return render(compose_page(report), Format.TERMINAL, width=width, color=color)
