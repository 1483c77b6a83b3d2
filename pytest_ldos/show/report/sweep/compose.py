"""Results of a sweep to a document."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Final

from pytest_ldos.base.series import Series
from pytest_ldos.base.stats.counts import share_interval
from pytest_ldos.base.stats.median_interval import median_interval
from pytest_ldos.campaign.cells import Outline
from pytest_ldos.campaign.sweep_records import CellResult, CellState
from pytest_ldos.judge.gate.contrast import contrast
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.measure.trial.series_of import to_series
from pytest_ldos.show.page.data_text import finite
from pytest_ldos.show.report.sweep.document import (
    CONFIDENCE,
    LOAD_NUMBERS,
    NOT_MEASURED,
    VALID,
    AxisReport,
    CellReport,
    Located,
    MetricTitle,
    SweepReport,
)

_TAIL: Final = (1 - CONFIDENCE) / 2


def compose_sweep(name: str, outline: Outline, results: Sequence[CellResult], notes: Iterable[str] = ()) -> SweepReport:
    """A report that is made now, of all that was measured so far."""
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
    low, high = share_interval(successes, made, confidence=CONFIDENCE)
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
        metrics={} if trials is None else {metric.name: _located(metric, trials, base) for metric in metrics},
        is_reference=result is reference,
        verdict="; ".join(dict.fromkeys(record.verdict for record in result.records if record.verdict)),
    )


def _state(result: CellResult) -> str:
    if result.state is None:
        return NOT_MEASURED
    return VALID if result.state is CellState.MEASURED else result.state.value


def _proofs(trials: TrialSet) -> Iterator[str]:
    """One a kind of load: where it was not what was asked for, else the first."""
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


def _located(metric: Metric, trials: TrialSet, base: TrialSet | None) -> Located:
    series = to_series(trials, metric)
    if not series.values:
        return Located(median=None, low=None, high=None)
    low, high = median_interval(series.values, confidence=CONFIDENCE)
    ratios = (None, None, None) if base is None else _ratio(metric, series, to_series(base, metric))
    return Located(
        median=finite(_median(series.values)),
        low=finite(low),
        high=finite(high),
        ratio=ratios[0],
        ratio_low=ratios[1],
        ratio_high=ratios[2],
        values=len(series.values),
    )


def _ratio(metric: Metric, head: Series, base: Series) -> tuple[float | None, float | None, float | None]:
    """A cell over the reference, as they were measured: a load acts on covariates, too, so none is taken out."""
    plain = dataclasses.replace(metric, adjust_for=(), adjust_where_alike=())
    if not (base.values and any(map(math.isfinite, base.values)) and any(map(math.isfinite, head.values))):
        return None, None, None
    contrasted = contrast(plain, head, base, is_interleaved=False)
    if not (contrasted.head.size and contrasted.base.size):
        return None, None, None
    shift = contrasted.shift(tail=_TAIL)
    low, high = (contrasted.ratio(each) if math.isfinite(each) else math.nan for each in (shift.low, shift.high))
    if contrasted.sign < 0:
        low, high = high, low
    return finite(contrasted.ratio(shift.estimate)), finite(low), finite(high)


def _median(values: Sequence[float]) -> float:
    """Median of values that may be infinite, which a mean of two middle ones must not hide."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _notes(results: Sequence[CellResult], reference: CellResult | None) -> Iterator[str]:
    if reference is not None:
        yield f"ratios are to the first valid cell: {reference.cell.label}"
        yield "a ratio is of locations of logarithms (Hodges–Lehmann), not the quotient of the medians"
        yield f"intervals: {100 * CONFIDENCE:.0f} %; of medians by their trials alone"
    if results and results[0].planned == 1:
        yield "one stack start a cell: how much starts differ by themselves is in no interval"
    hosts = {record.host for result in results for record in result.records if record.host}
    if len(hosts) > 1:
        yield f"measured on {len(hosts)} machines ({', '.join(sorted(hosts))}): how these differ is in the ratios"
    classes = {each.fingerprint.host_class for result in results if (each := result.trials) is not None}
    if len(classes) > 1:
        yield f"{len(classes)} host classes (machine, its settings, middleware): how these differ is in the ratios"
