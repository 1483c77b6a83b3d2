"""Parameters of a decision, and the shares of its probability of error among metrics."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from pytest_ldos.base.errors import ConfigurationError, refuse_unknown
from pytest_ldos.judge.baseline.calibration import Calibration, MetricNoise
from pytest_ldos.judge.baseline.known_runs import KnownRuns
from pytest_ldos.measure.metrics.catalogue import METRICS, OF_CALLS
from pytest_ldos.measure.metrics.model import OWN_SHARES, Metric


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Parameters of a decision.

    Attributes:
        alpha: target probability that a run of unchanged code is called regressed; half of it is spent on success
            rates, half on all metrics together.
        scenarios: number of scenarios selected for the run, before the first is judged; `alpha` is divided among them.
        floors: relative effect per metric that is too small to matter; by default the metric's usual floor, or less if
            the host's calibration says so.
        calibrations: variation between equal versions on this host, by scenario.
        known: variation between runs of unchanged stacks on this host; ``None`` if the base is not a stored baseline.
        screens: True if suspicious runs are measured again, interleaved with the base, before they are judged. The MDE
            of a stored comparison is then that of the screen.
        relevant_effect: if allowed, trials are added until a larger change for the worse is ruled out or a change is
            certain.
        doubt: probability of error at which `relevant_effect` is ruled out.
        required: metrics that must be judged; by default T1, T1mean, T2x, T3mean, T4, T5mean and call, as far as this
            host can judge them. Any other metric that cannot be judged is reported as such, without effect on the
            verdict. Success rates are always judged.
        largest_invalid_share: largest share of trials with an invalid measurement.
        metrics: names of all metrics that can be judged; a floor for any other name is refused.
    """

    alpha: float = 0.01
    scenarios: int = 1
    floors: Mapping[str, float] = field(default_factory=dict)
    calibrations: Mapping[str, Calibration] = field(default_factory=dict)
    known: KnownRuns | None = None
    screens: bool = False
    relevant_effect: float = 0.1
    doubt: float = 0.05
    required: tuple[str, ...] | None = None
    largest_invalid_share: float = 0.1
    metrics: Collection[str] = frozenset({*METRICS, *OF_CALLS})

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 0.5:
            raise ConfigurationError(
                f"alpha is {self.alpha}", remedy="set alpha in [tool.ldos.gate] to a number above 0 and below 0.5"
            )
        if not 0 < self.relevant_effect < math.inf:
            raise ConfigurationError(f"relevant_effect is {self.relevant_effect}; it must be a number above 0")
        refuse_unknown(self.floors, self.metrics, "metric with an effect floor:")
        refuse_unknown(self.required or (), self.metrics, "metric that is required:")
        if not all(0 <= floor < math.inf for floor in self.floors.values()):
            raise ConfigurationError("an effect floor is a number, 0 or above")

    @classmethod
    def configured(cls, table: Mapping[str, Any], *, scenarios: int, own: Iterable[str] = ()) -> Self:
        """The policy of a ``[tool.ldos.gate]`` table (validated when it was read).

        Args:
            own: names of metrics that a user registered, or that records contain in addition to the built-in ones.
        """
        numbers = {name: table[name] for name in ("alpha", "relevant_effect") if name in table}
        return cls(
            **numbers,
            floors=table.get("floors", {}),
            required=tuple(table["required"]) if "required" in table else None,
            scenarios=max(1, scenarios),
            metrics=frozenset({*METRICS, *OF_CALLS, *own}),
        )

    @property
    def family_alpha(self) -> float:
        """Error probability for the metrics of all scenarios together; success rates have as much again."""
        return self.alpha / 2

    def noise(self, scenario: str, metric: str) -> MetricNoise | None:
        """Noise of a metric between equal versions; ``None`` if this host was not calibrated for it."""
        calibration = self.calibrations.get(scenario)
        return None if calibration is None else calibration.metrics.get(metric)


IN_PLACE_OF: Final[Mapping[str, Collection[str]]] = {
    "T1": {"T1mean"},
    "T2": {"T2x"},
    "T3": {"T3mean", "T3p90"},
    "T3p99": {"T3p90"},
    "T5": {"T5mean"},
    "T5p99": {"T5mean"},
}
"""Metrics of the same quantity that are judged in place of a metric, by its name."""

USUALLY_SHOWN: Final = frozenset({"T2", "T3", "T5"})
"""Metrics that are only shown if those in their place are judged, unless a change for the worse is certain."""


def have_little(metrics: Collection[str], required: Collection[str] = ()) -> frozenset[str]:
    """Metrics with a small share of the error budget, because those in their place are compared, too.

    Args:
        required: metrics that the project requires.
    """
    return frozenset(name for name in USUALLY_SHOWN if name not in required and {*IN_PLACE_OF[name]} <= {*metrics})


def metric_shares(metrics: Iterable[Metric]) -> dict[str, float]:
    """Share of each metric that is judged in a scenario.

    A user's own metrics have a reserved share, so that adding one does not affect the others. Metrics of paths, topics
    and processes come from the project's settings, with their weight.
    """
    judged = tuple(metrics)
    own = sum(metric.error_share for metric in judged if _is_own(metric))
    total = max(own, OWN_SHARES) + sum(metric.error_share for metric in judged if not _is_own(metric))
    return {metric.name: metric.error_share / total for metric in judged}


def _is_own(metric: Metric) -> bool:
    return metric.name not in METRICS and not metric.asked_as
