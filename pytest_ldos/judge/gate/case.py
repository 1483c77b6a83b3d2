"""Head and base of one scenario, their series, and the looks at their comparison so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_ldos.base.series import Series
from pytest_ldos.base.stats.several_tests import Fractions, level_of_last_look
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import Look, TrialSet, metrics_of, to_series, without_other_processes


@dataclass(frozen=True)
class Case:
    """Head and base of one scenario.

    Attributes:
        metrics: of both, by name; head's description takes precedence.
        head_series, base_series: of each of these metrics, by name.
    """

    head: TrialSet
    base: TrialSet
    metrics: Mapping[str, Metric]
    head_series: Mapping[str, Series]
    base_series: Mapping[str, Series]

    @classmethod
    def of(cls, head: TrialSet, base: TrialSet) -> Case:
        metrics = metrics_of(head, base)
        ours, theirs = ({name: to_series(trials, each) for name, each in metrics.items()} for trials in (head, base))
        return cls(head, base, metrics, ours, theirs)

    @property
    def is_interleaved(self) -> bool:
        """True if both versions were measured interleaved."""
        return self.head.is_interleaved_with(self.base)

    def series(self, metric: str) -> tuple[Series, Series]:
        """Head's and base's series of a metric, as compared."""
        return without_other_processes(self.head_series[metric], self.base_series[metric])


def failures_of(trials: TrialSet) -> int:
    """Number of failed trials."""
    return len(trials.trials) - trials.successes


def fails_more_often(head: TrialSet, base: TrialSet) -> bool:
    """True if a larger share of head's trials failed than of base's, significant or not."""
    return failures_of(head) * len(base.trials) > failures_of(base) * len(head.trials)


def looks_of(head: TrialSet, base: TrialSet) -> tuple[Look, ...]:
    """Numbers of trials at each look of the comparison so far; the last entry is the present look.

    Looks that do not lead up to the present numbers belong to another base and are dropped.
    """
    now, earlier = Look(len(head.trials), len(base.trials)), [Look(0, 0)]
    for look in head.looks if _looked_at(head, base) else ():
        before = earlier[-1]
        grows = before.head <= look.head <= now.head and before.base <= look.base <= now.base
        if grows and before.information < look.information < now.information:
            earlier.append(look)
    return (*earlier[1:], now)


def _looked_at(head: TrialSet, base: TrialSet) -> bool:
    """True if the recorded looks were taken at a comparison with this base."""
    if head.session:
        return head.is_interleaved_with(base)
    return all(look.base == len(base.trials) for look in head.looks)


def fractions_of(head: TrialSet, base: TrialSet) -> Fractions:
    """Information fraction of each look: its information over the largest possible."""
    looks = looks_of(head, base)
    if looks[-1].information == 0:
        return (1.0,)
    last = head.last_look if head.last_look is not None and _looked_at(head, base) else looks[-1]
    most = max(last.information, looks[-1].information)
    return tuple(look.information / most for look in looks)


def level(alpha: float, fractions: Fractions) -> float:
    """The significance level of the present look."""
    return alpha if fractions == (1.0,) else level_of_last_look(alpha, fractions)
