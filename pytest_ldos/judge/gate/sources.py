"""Checks that head and base measured a metric from the same source and mean the same by it."""

from __future__ import annotations

from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.measure.trial.series_of import metrics_of, sources_of


def find_incomparable(head: TrialSet, base: TrialSet) -> dict[str, str]:
    """Reasons why metrics cannot be compared, by name: other sources in the traces, or another unit or direction.

    Metrics that one side did not measure at all are not included.
    """
    found = {name: _difference(metric, head, base) for name, metric in metrics_of(head, base).items()}
    return {name: reason for name, reason in found.items() if reason}


def _difference(metric: Metric, head: TrialSet, base: TrialSet) -> str:
    return _other_meaning(metric, base) or _other_sources(metric, head, base)


def _other_meaning(metric: Metric, base: TrialSet) -> str:
    """Detects a user's metric registered under the name of an earlier, different one."""
    theirs = next((each for each in base.metrics if each.name == metric.name), metric)
    for what in ("unit", "better"):
        here, there = getattr(metric, what), getattr(theirs, what)
        if here != there:
            remedy = "give it another name, or record it anew: --ldos-update-baseline"
            return f"{metric.name} is not comparable: its {what} is '{here}' here, '{there}' in the baseline ({remedy})"
    return ""


def _other_sources(metric: Metric, head: TrialSet, base: TrialSet) -> str:
    ours, theirs = ({source.name for source in sources_of(trials, metric)} for trials in (head, base))
    if not ours or not theirs or (ours == theirs and len(ours) == 1):
        return ""
    here, there = (" and ".join(sorted(names)) for names in (ours, theirs))
    remedy = " (record it anew: --ldos-update-baseline)" if len(ours) == 1 else ""
    return f"{metric.name} is not comparable: it was taken from {here} here, from {there} in the baseline{remedy}"
