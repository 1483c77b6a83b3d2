"""Durations of updates of controllers and hardware components of ros2_control, and how regularly they come.

Source: the statistics that the controller manager publishes (``~/statistics``, ros2_control 4): of each controller, and
of reading and writing each hardware component, the time that one takes (µs) and the rate at which they come (Hz).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.nearest import suggest
from pytest_ldos.base.series import Missing
from pytest_ldos.base.stats.moments import Moments
from pytest_ldos.measure.metrics.context import TrialContext
from pytest_ldos.measure.metrics.model import Measurement, Window
from pytest_ldos.measure.metrics.sources import CONTROLLER_MANAGER, MANAGERS_RATES
from pytest_ldos.scenario.metrics import MetricKind, MetricSpec

_MS_PER_S: Final = 1e3
_MS_PER_US: Final = 1e-3

_STATISTICS: Final = ".stats/"
"""Between the name of a controller or a component and what its statistics are of."""

_DURATION: Final = "execution_time"
_RATE: Final = "periodicity"
_OF_COMPONENTS: Final = ("read_cycle", "write_cycle")


def loop_of(spec: MetricSpec) -> Callable[[TrialContext, Window], Measurement]:
    """Measures the updates of a controller or a hardware component during a trial."""
    measure = _duration if spec.kind is MetricKind.UPDATE else _jitter

    def take(context: TrialContext, _: Window) -> Measurement:
        loops = context.outside.loops
        if loops is None:
            return Measurement(Missing("the controller manager is asked while a trial is made; no trace has it"))
        found = measure(spec.subject, loops)
        return found or Measurement(Missing(f"'{spec.subject}' was not updated in the trial, or activated in it"))

    return take


def since(now: Mapping[str, Moments], earlier: Mapping[str, Moments]) -> dict[str, Moments]:
    """Statistics of a span of time, from those at its ends."""
    spans = {name: each.since(earlier[name]) for name, each in now.items() if name in earlier}
    return {name: span for name, span in spans.items() if span is not None}


def refuse_unknown_loops(specs: Sequence[MetricSpec], statistics: Collection[str]) -> None:
    """Refuses metrics of controllers and hardware components that the controller manager does not know.

    Args:
        statistics: names of those that it publishes.

    Raises:
        ConfigurationError: it publishes none, or none of that name; the nearest is named.
    """
    known = sorted({name.partition(_STATISTICS)[0] for name in statistics if _STATISTICS in name})
    for spec in specs:
        if not known:
            raise ConfigurationError(
                f"metric '{spec}': no controller manager publishes statistics of its loops",
                remedy="it needs ros2_control 4, and controller_manager in [tool.ldos.stack] if that has another name",
            )
        if spec.subject not in known:
            raise ConfigurationError(
                f"metric '{spec}': the controller manager has no '{spec.subject}'; it has {', '.join(known)}",
                remedy=f"{suggest(spec.subject, known)} ([tool.ldos] metrics)",
            )


def _duration(name: str, loops: Mapping[str, Moments]) -> Measurement | None:
    """Mean duration of an update; of a hardware component, of reading and writing together."""
    own = loops.get(f"{name}{_STATISTICS}{_DURATION}")
    if own is not None:
        details = {"updates": own.count, "sd_ms": own.sd * _MS_PER_US}
        return Measurement(own.mean * _MS_PER_US, details, CONTROLLER_MANAGER)
    parts = {part: loops.get(f"{name}{_STATISTICS}{part}/{_DURATION}") for part in _OF_COMPONENTS}
    found = {part: each for part, each in parts.items() if each is not None}
    if not found:
        return None
    each_ms = {f"{part}_ms": each.mean * _MS_PER_US for part, each in found.items()}
    return Measurement(sum(each_ms.values()), each_ms, CONTROLLER_MANAGER)


def _jitter(name: str, loops: Mapping[str, Moments]) -> Measurement | None:
    """Standard deviation of the periods, to first order from that of their inverses."""
    rates = loops.get(f"{name}{_STATISTICS}{_RATE}") or loops.get(f"{name}{_STATISTICS}{_OF_COMPONENTS[0]}/{_RATE}")
    if rates is None or rates.mean <= 0:
        return None
    details = {"updates": rates.count, "rate_hz": rates.mean}
    return Measurement(rates.sd / rates.mean**2 * _MS_PER_S, details, MANAGERS_RATES)
