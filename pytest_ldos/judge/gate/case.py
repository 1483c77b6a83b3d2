"""One scenario that is compared: head, base, and the series of both, extracted once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_ldos.base.series import Series
from pytest_ldos.judge.gate.reasons import Incomparable
from pytest_ldos.judge.gate.sources import find_incomparable
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.measure.trial.series_of import metrics_of, to_series, without_strangers


@dataclass(frozen=True)
class Case:
    """Head and base of one scenario.

    Attributes:
        metrics: of both, by name; where both describe one, head's description.
        head_series, base_series: of each of these metrics, by name.
        incomparable: why metrics that both have cannot be compared, by name.
    """

    head: TrialSet
    base: TrialSet
    metrics: Mapping[str, Metric]
    head_series: Mapping[str, Series]
    base_series: Mapping[str, Series]
    incomparable: Mapping[str, Incomparable]

    @classmethod
    def of(cls, head: TrialSet, base: TrialSet) -> Case:
        metrics = metrics_of(head, base)
        ours, theirs = ({name: to_series(trials, each) for name, each in metrics.items()} for trials in (head, base))
        return cls(head, base, metrics, ours, theirs, find_incomparable(head, base))

    @property
    def is_interleaved(self) -> bool:
        """True if both versions were measured interleaved."""
        return self.head.is_interleaved_with(self.base)

    def series(self, metric: str) -> tuple[Series, Series]:
        """Head's and base's series of a metric, as they are compared."""
        return without_strangers(self.head_series[metric], self.base_series[metric])
