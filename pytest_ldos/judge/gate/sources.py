"""Checks that head and base measured a metric from the same source and mean the same by it."""

from __future__ import annotations

from pytest_ldos.judge.gate.reasons import Incomparable, OtherDirection, OtherSources, OtherUnit
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.measure.trial.series_of import metrics_of, sources_of


def find_incomparable(head: TrialSet, base: TrialSet) -> dict[str, Incomparable]:
    """Reasons why metrics cannot be compared, by name: other sources in the traces, or another unit or direction.

    Metrics that one side did not measure at all are not included.
    """
    found = {name: _difference(metric, head, base) for name, metric in metrics_of(head, base).items()}
    return {name: reason for name, reason in found.items() if reason is not None}


def _difference(metric: Metric, head: TrialSet, base: TrialSet) -> Incomparable | None:
    return _other_meaning(metric, base) or _other_sources(metric, head, base)


def _other_meaning(metric: Metric, base: TrialSet) -> OtherUnit | OtherDirection | None:
    """Detects a user's metric registered under the name of an earlier, different one."""
    theirs = next((each for each in base.metrics if each.name == metric.name), metric)
    if metric.unit != theirs.unit:
        return OtherUnit(metric.name, metric.unit, theirs.unit)
    return OtherDirection(metric.name, metric.better, theirs.better) if metric.better != theirs.better else None


def _other_sources(metric: Metric, head: TrialSet, base: TrialSet) -> OtherSources | None:
    ours, theirs = ({source.name for source in sources_of(trials, metric)} for trials in (head, base))
    if not ours or not theirs or (ours == theirs and len(ours) == 1):
        return None
    return OtherSources(metric.name, tuple(sorted(ours)), tuple(sorted(theirs)))
