"""Whether head and base measured a metric in the same way."""

from __future__ import annotations

from pytest_ldos.metrics.catalogue import METRICS
from pytest_ldos.metrics.model import Metric
from pytest_ldos.trial.record import TrialSet
from pytest_ldos.trial.series_of import sources_of


def find_incomparable(head: TrialSet, base: TrialSet) -> dict[str, str]:
    """Why metrics cannot be compared, by name: their numbers come from different places in the traces.

    What one of them did not measure at all is not among them.
    """
    found = {name: _difference(metric, head, base) for name, metric in METRICS.items()}
    return {name: reason for name, reason in found.items() if reason}


def _difference(metric: Metric, head: TrialSet, base: TrialSet) -> str:
    ours, theirs = ({source.name for source in sources_of(trials, metric)} for trials in (head, base))
    if not ours or not theirs or (ours == theirs and len(ours) == 1):
        return ""
    here, there = (" and ".join(sorted(names)) for names in (ours, theirs))
    remedy = " (record it anew: --ldos-update-baseline)" if len(ours) == 1 else ""
    return f"{metric.name} is not comparable: it was taken from {here} here, from {there} in the baseline{remedy}"
