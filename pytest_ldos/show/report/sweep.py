"""A sweep: its numbers, composed from results, and its page and tables in every format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.files import copied
from pytest_ldos.base.text import Rendered, format_quantity, percent
from pytest_ldos.campaign.cells import Outline, Value, show_value
from pytest_ldos.campaign.sweep import CellResult, CellState
from pytest_ldos.judge.gate.comparison import locate
from pytest_ldos.judge.summary import CONFIDENCE, Located, success_interval
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.show.page import model as page
from pytest_ldos.show.page.formats import Format, format_of, render, require_format, to_csv, to_json


@dataclass(frozen=True, kw_only=True)
class AxisReport:
    """A setting and its values, in order; its name is the shortest unique one."""

    address: str
    name: str
    values: tuple[Value, ...]
    is_numeric: bool


@dataclass(frozen=True, kw_only=True)
class MetricTitle:
    name: str
    title: str
    unit: str
    better: str


@dataclass(frozen=True, kw_only=True)
class LoadNumber:
    """A number in a load's proof that is drawn: in `field` of the proof of `kind`, times `factor` in `unit`."""

    kind: str
    field: str
    title: str
    unit: str
    factor: float = 1.0

    @property
    def key(self) -> str:
        return f"{self.kind}.{self.field}"


LOAD_NUMBERS: Final = (LoadNumber(kind="dds_flood", field="rate_hz", title="messages sent, all publishers", unit="Hz"),)


@dataclass(frozen=True, kw_only=True)
class CellReport:
    label: str
    scenario: str
    values: tuple[Value, ...]
    state: str  # `valid`, `broken` (the arm could not continue), `invalid`, `infra`, `skipped` or `not measured`
    reasons: tuple[str, ...]  # why it is not valid, or other remarks
    trials: int  # an arm lost before its first trial counts as one failed trial
    successes: int  # a trial whose way home failed counts as failed
    success_low: float  # ends of the interval of the success rate
    success_high: float
    loads: tuple[str, ...]  # proofs, in words
    load_numbers: Mapping[str, float]  # those of `LOAD_NUMBERS` in its loads' proofs, by key; means over its starts
    starts: int  # of the stack; as many as were made
    planned: int
    hosts: tuple[str, ...]
    metrics: Mapping[str, Located]  # by name; those of a cell that is not valid are included, but not reliable
    is_reference: bool = False  # True for the denominator of the other cells' ratios
    verdict: str = ""  # of the cell's test

    @property
    def is_valid(self) -> bool:
        return self.state == VALID


VALID: Final = "valid"


@dataclass(frozen=True, kw_only=True)
class SweepReport:
    """A sweep, finished or not, with remarks on the numbers; `stack` is empty if nothing was measured."""

    name: str
    scenario: str
    axes: tuple[AxisReport, ...]
    metrics: tuple[MetricTitle, ...]
    cells: tuple[CellReport, ...]
    commit: str
    stack: str
    made_by: str
    made_at: str
    notes: tuple[str, ...]


def compose_sweep(name: str, outline: Outline, results: Sequence[CellResult], notes: Iterable[str] = ()) -> SweepReport:
    """A report, with the current time, of everything measured so far."""
    reference = next((each for each in results if each.state is CellState.MEASURED), None)
    measured = [each.trials for each in results if each.trials is not None]
    metrics = {metric.name: metric for trials in measured for metric in trials.metrics}
    return SweepReport(
        name=name,
        scenario=outline.scenario,
        axes=_axes(outline),
        metrics=tuple(copied(MetricTitle, each, better=each.better.value) for each in metrics.values()),
        cells=tuple(_cell(each, reference, metrics.values()) for each in results),
        commit=measured[0].commit if measured else "",
        stack=measured[0].stack if measured else "",
        made_by=f"pytest-ldos {version('pytest-ldos')}",
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        notes=(*_notes(results, reference), *notes),
    )


def _axes(outline: Outline) -> tuple[AxisReport, ...]:
    found = []
    for address, name in zip(outline.addresses, outline.names, strict=True):
        values = tuple(dict.fromkeys(cell.assignments[address] for cell in outline.cells))
        is_numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        found.append(AxisReport(address=address, name=name, values=values, is_numeric=is_numeric))
    return tuple(found)


def _cell(result: CellResult, reference: CellResult | None, metrics: Iterable[Metric]) -> CellReport:
    trials = result.trials
    made, successes = len(result.failures), result.failures.count(False)
    low, high = success_interval(result.failures)
    base = None if reference is None or reference is result else reference.trials
    state = "not measured" if result.state is None else result.state.value
    return CellReport(
        label=result.cell.label,
        scenario=result.cell.name,
        values=tuple(result.cell.assignments.values()),
        state=VALID if result.state is CellState.MEASURED else state,
        reasons=result.reasons,
        trials=made,
        successes=successes,
        success_low=low,
        success_high=high,
        loads=() if trials is None else tuple(_proofs(trials)),
        load_numbers={} if trials is None else dict(_load_numbers(trials)),
        starts=len(result.records),
        planned=result.planned,
        hosts=tuple(dict.fromkeys(record.host for record in result.records if record.host)),
        metrics={} if trials is None else {metric.name: locate(metric, trials, base) for metric in metrics},
        is_reference=result is reference,
        verdict="; ".join(dict.fromkeys(record.verdict for record in result.records if record.verdict)),
    )


def _proofs(trials: TrialSet) -> Iterator[str]:
    """One proof per kind of load: one that fell short, or else the first."""
    found: dict[object, tuple[bool, str]] = {}
    for proof in trials.loads:
        words = (not proof.get("shortfall"), str(proof.get("summary") or proof.get("kind", "")))
        kind = proof.get("kind")
        found[kind] = min(found.get(kind, words), words, key=lambda each: each[0])
    return (words for _, words in found.values())


def _load_numbers(trials: TrialSet) -> Iterator[tuple[str, float]]:
    for each in LOAD_NUMBERS:
        values = [proof.get(each.field) for proof in trials.loads if proof.get("kind") == each.kind]
        if numbers := [each.factor * value for value in values if isinstance(value, int | float)]:
            yield each.key, sum(numbers) / len(numbers)


def _notes(results: Sequence[CellResult], reference: CellResult | None) -> Iterator[str]:
    if reference is not None:
        yield f"ratios are to the first valid cell: {reference.cell.label}"
        yield "a ratio is of locations of logarithms (Hodges–Lehmann), not the quotient of the medians"
        yield f"intervals: {percent(CONFIDENCE, 0)}; of medians by their trials alone"
    if results and results[0].planned == 1:
        yield "one stack start per cell: intervals do not include the variation between starts"
    hosts = {record.host for result in results for record in result.records if record.host}
    if len(hosts) > 1:
        yield f"measured on {len(hosts)} machines ({', '.join(sorted(hosts))}): ratios include their differences"
    classes = {each.fingerprint.host_class for result in results if (each := result.trials) is not None}
    if len(classes) > 1:
        yield f"{len(classes)} host classes (machine, its settings, middleware): ratios include their differences"


_NUMBERS: Final = ("median", "low", "high", "ratio", "ratio_low", "ratio_high", "values")


def render_json(report: SweepReport) -> Rendered:
    """One object; infinite or absent numbers are null."""
    return to_json({"kind": "pytest-ldos sweep report", "schema": 1, **asdict(report)})


def render_csv(report: SweepReport) -> Rendered:
    """A row for each cell and metric; cells without any have one row."""
    addresses = (axis.address for axis in report.axes)
    rows: list[tuple[object, ...]] = []
    for cell in report.cells:
        shared = (*cell.values, cell.state, "; ".join(cell.reasons), cell.trials, cell.successes)
        numbers = [
            (*shared, each.name, each.unit, *asdict(found).values())
            for each in report.metrics
            if (found := cell.metrics.get(each.name)) is not None
        ]
        rows += numbers or [(*shared, "", "", *[""] * len(_NUMBERS))]
    return to_csv((*addresses, "state", "reason", "trials", "successes", "metric", "unit", *_NUMBERS), rows)


_IN_DATA_ALONE: Final = frozenset(metric.name for metric in METRICS.values() if not metric.in_sweeps)
"""Built-in metrics that are only in JSON and CSV."""

_TONES: Final = {VALID: page.Tone.GOOD, **dict.fromkeys(("broken", "invalid", "infra"), page.Tone.BAD)}
"""Tones of states; other states are doubtful."""


def shown_metrics(report: SweepReport) -> list[MetricTitle]:
    """The shown metrics: a selection of the built-in ones and all of a user's own, if some cell has them."""
    shown = (each for each in report.metrics if each.name not in _IN_DATA_ALONE)
    known = {name for cell in report.cells for name, found in cell.metrics.items() if found.values > 0}
    return [each for each in shown if each.name in known]


def overview(report: SweepReport) -> page.Table:
    has_verdicts = any(cell.verdict for cell in report.cells)
    verdict = page.words("verdict") if has_verdicts else ()
    rows: tuple[tuple[page.Cell, ...], ...] = tuple(
        (
            *values_of(cell),
            page.Badge(cell.state, _TONES.get(cell.state, page.Tone.DOUBT)),
            succeeded(cell),
            f"{100 * cell.success_low:.0f} … {percent(cell.success_high, 0)}" if cell.trials else "",
            *([cell.verdict or page.ABSENT] if has_verdicts else []),
        )
        for cell in report.cells
    )
    return _table(report, "", (*page.words("state"), *page.numbers("succeeded", "95 %"), *verdict), rows)


def metric_table(report: SweepReport, metric: MetricTitle) -> page.Table:
    rows = []
    for cell in report.cells:
        found, shown = cell.metrics.get(metric.name), (page.ABSENT, "", "", "")
        if found is not None and found.values:
            shown = median_of(found, metric), interval_of(found), ratio_of(cell, found), ratio_interval_of(found)
        rows.append((*values_of(cell), *shown, "" if cell.is_valid else cell.state))
    return _table(report, "", (*page.numbers("median", "95 %", "ratio", "95 % of ratio"), *page.words("")), tuple(rows))


def _table(
    report: SweepReport, title: str, columns: tuple[page.Column, ...], rows: tuple[tuple[page.Cell, ...], ...]
) -> page.Table:
    axes = page.names(*(axis.name for axis in report.axes))
    return page.Table(title=title, columns=(*axes, *columns), rows=rows, key=len(axes))


def values_of(cell: CellReport) -> list[str]:
    return [show_value(value) for value in cell.values]


def succeeded(cell: CellReport) -> str:
    return f"{cell.successes} of {cell.trials}" if cell.trials else page.ABSENT


def median_of(found: Located, metric: MetricTitle) -> str:
    return "failed" if found.median is None else format_quantity(found.median, metric.unit)


def interval_of(found: Located) -> str:
    if found.low is None:
        return ""
    high = "∞" if found.high is None else format_quantity(found.high, "")
    return f"{format_quantity(found.low, '')} … {high}"


def ratio_of(cell: CellReport, found: Located) -> str:
    return "1" if cell.is_reference else "" if found.ratio is None else f"× {found.ratio:.3g}"


def ratio_interval_of(found: Located) -> str:
    if found.ratio_low is None and found.ratio_high is None:
        return ""
    low, high = (page.ABSENT if each is None else f"{each:.3g}" for each in (found.ratio_low, found.ratio_high))
    return f"{low} … {high}"


def describe_cell(cell: CellReport, metrics: Sequence[MetricTitle]) -> str:
    if not cell.trials:
        return f"{cell.label}: {cell.state}: {'; '.join(cell.reasons)}"
    medians = [
        f"{metric.name} {median_of(found, metric)}"
        for metric in metrics
        if (found := cell.metrics.get(metric.name)) is not None and found.values
    ]
    state = "" if cell.is_valid else f"{cell.state}: {'; '.join(cell.reasons)}; "
    return f"{cell.label}: {state}{', '.join([f'{succeeded(cell)} succeeded', *medians])}"


def compose_page(report: SweepReport) -> page.Page:
    commit = [f"commit {report.commit}"] if report.commit else []
    reasons = tuple(f"{cell.label}: {cell.state}: {each}" for cell in report.cells for each in cell.reasons)
    proofs = tuple((*values_of(cell), proof) for cell in report.cells for proof in cell.loads)
    loads = _table(report, "loads", (page.Column("as measured", page.Kind.PROSE),), proofs)
    return page.Page(
        title=f"ldos sweep {report.name}",
        setting=(*commit, *([report.stack] if report.stack else [])),
        blocks=(
            page.Section(
                f"Cells of {report.scenario}",
                (overview(report), loads, page.Section("Reasons", (page.Bullets(reasons),))),
            ),
            page.Section("Metrics over the axes", tuple(_metrics(report))),
            page.Section("How to read this", (page.Bullets(report.notes, page.Tone.QUIET), page.Legend(_MEANINGS))),
        ),
        made=f"{report.made_by} {report.made_at}",
    )


_FIGURES: Final = "pytest_ldos.show.report.figures"


def _metrics(report: SweepReport) -> Iterator[page.Block]:
    yield page.drawn_by(f"{_FIGURES}:draw_lines", report)
    yield page.Figure(title="success rate", drawings=(page.drawn_by(f"{_FIGURES}:draw_success", report),))
    for number in LOAD_NUMBERS:
        if sum(number.key in cell.load_numbers for cell in report.cells) > 1:
            yield page.Figure(title=number.title, drawings=(page.drawn_by(f"{_FIGURES}:draw_load", report, number),))
    for each in shown_metrics(report):
        drawing = page.drawn_by(f"{_FIGURES}:draw_metric", report, each)
        yield page.Figure(title=f"{each.name} {each.title}", drawings=(drawing,), table=metric_table(report, each))


_MEANINGS: Final = (
    ("●", "the median of a cell's trials, with its interval; an interval that ends at the edge has no such end"),
    ("✕", "a cell that is not valid: its load or all its trials were not reached; below the axis: no number"),
    ("broken", "the arm could not continue under the load; its last trial, whose way home failed, counts as failed"),
    ("failed", "more than half of the trials failed, and a failed one counts as slower than any"),
    ("ratio", "to the first valid cell, as measured; its interval includes the variation between several starts"),
    ("log", "values that span a decade or more are drawn to a logarithmic scale"),
)


SUFFIXES: Final = (".html", ".md", ".json", ".csv")
_DATA: Final = {".json": render_json, ".csv": render_csv}


def require_suffix(file: Path) -> None:
    """Refuses, before measuring, a file of an unknown suffix or folder, or of a format whose library is missing."""
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
    return render(compose_page(report), Format.TERMINAL, width=width, color=color)
