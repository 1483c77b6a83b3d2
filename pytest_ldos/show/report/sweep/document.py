"""Contents of a sweep's report in numbers, composed from its results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Final

from pytest_ldos.base.text import Rendered
from pytest_ldos.campaign.cells import Outline, Value
from pytest_ldos.campaign.sweep_records import CellResult, CellState
from pytest_ldos.judge.summarize import CONFIDENCE, locate, success_interval
from pytest_ldos.judge.summary import Located
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.show.page.formats import to_csv, to_json


@dataclass(frozen=True, kw_only=True)
class AxisReport:
    """A setting and its values, in order.

    Attributes:
        name: the shortest unique one.
        is_numeric: whether all values are numbers.
    """

    address: str
    name: str
    values: tuple[Value, ...]
    is_numeric: bool


@dataclass(frozen=True, kw_only=True)
class MetricTitle:
    """Names of a metric."""

    name: str
    title: str
    unit: str
    better: str


@dataclass(frozen=True, kw_only=True)
class LoadNumber:
    """A number in a load's proof that is drawn.

    Attributes:
        kind, field: kind of the proof, and field in it.
        factor: from there to `unit`.
    """

    kind: str
    field: str
    title: str
    unit: str
    factor: float = 1.0

    @property
    def key(self) -> str:
        return f"{self.kind}.{self.field}"


LOAD_NUMBERS: Final = (
    LoadNumber(kind="dds_flood", field="rate_hz", title="messages sent, all publishers", unit="Hz"),
    LoadNumber(kind="guard", field="late_share", title="late messages of the guarded path", unit="%", factor=100),
    LoadNumber(kind="guard", field="share", title="share of their rate left to publishers", unit="%", factor=100),
)


@dataclass(frozen=True, kw_only=True)
class CellReport:
    """One cell.

    Attributes:
        values: of the axes, in their order.
        state: ``valid``, ``broken`` (the arm could not continue under its loads), ``invalid``,
            ``infra``, ``skipped`` or ``not measured``.
        reasons: why it is not valid, or other remarks.
        trials, successes: a trial whose way home failed counts as failed; an arm lost before its first trial counts as
            one failed trial.
        success_low, success_high: interval of the success rate.
        loads: proofs, in words.
        load_numbers: those of `LOAD_NUMBERS` in its loads' proofs, by key; means over its starts.
        starts, planned: stack starts that were made, and that were planned.
        hosts: on which it was measured.
        metrics: by name; those of a cell that is not valid are included, but not reliable.
        is_reference: whether it is the denominator of the other cells' ratios.
        verdict: of the cell's test.
    """

    label: str
    scenario: str
    values: tuple[Value, ...]
    state: str
    reasons: tuple[str, ...]
    trials: int
    successes: int
    success_low: float
    success_high: float
    loads: tuple[str, ...]
    load_numbers: Mapping[str, float]
    starts: int
    planned: int
    hosts: tuple[str, ...]
    metrics: Mapping[str, Located]
    is_reference: bool = False
    verdict: str = ""

    @property
    def is_valid(self) -> bool:
        return self.state == VALID


VALID: Final = "valid"
NOT_MEASURED: Final = "not measured"


@dataclass(frozen=True, kw_only=True)
class SweepReport:
    """A sweep, finished or not.

    Attributes:
        stack: description of the measured stack; empty if nothing was measured.
        notes: remarks on the numbers.
    """

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
        metrics=tuple(_title(each) for each in metrics.values()),
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


def _title(metric: Metric) -> MetricTitle:
    return MetricTitle(name=metric.name, title=metric.title, unit=metric.unit, better=metric.better.value)


def _cell(result: CellResult, reference: CellResult | None, metrics: Iterable[Metric]) -> CellReport:
    trials = result.trials
    made, successes = len(result.failures), result.failures.count(False)
    low, high = success_interval(result.failures)
    base = None if reference is None or reference is result else reference.trials
    return CellReport(
        label=result.cell.label,
        scenario=result.cell.name,
        values=tuple(result.cell.assignments.values()),
        state=_state(result),
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


def _state(result: CellResult) -> str:
    if result.state is None:
        return NOT_MEASURED
    return VALID if result.state is CellState.MEASURED else result.state.value


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
        numbers = [each.factor * value for value in values if isinstance(value, int | float)]
        if numbers:
            yield each.key, sum(numbers) / len(numbers)


def _notes(results: Sequence[CellResult], reference: CellResult | None) -> Iterator[str]:
    if reference is not None:
        yield f"ratios are to the first valid cell: {reference.cell.label}"
        yield "a ratio is of locations of logarithms (Hodges–Lehmann), not the quotient of the medians"
        yield f"intervals: {100 * CONFIDENCE:.0f} %; of medians by their trials alone"
    if results and results[0].planned == 1:
        yield "one stack start per cell: intervals do not include the variation between starts"
    hosts = {record.host for result in results for record in result.records if record.host}
    if len(hosts) > 1:
        yield f"measured on {len(hosts)} machines ({', '.join(sorted(hosts))}): ratios include their differences"
    classes = {each.fingerprint.host_class for result in results if (each := result.trials) is not None}
    if len(classes) > 1:
        yield f"{len(classes)} host classes (machine, its settings, middleware): ratios include their differences"


KIND: Final = "pytest-ldos sweep report"
SCHEMA: Final = 1

_NUMBERS: Final = ("median", "low", "high", "ratio", "ratio_low", "ratio_high", "values")


def render_json(report: SweepReport) -> Rendered:
    """One object; infinite or absent numbers are null."""
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
