"""T3 and T5: regularity of the control loop and the simulator, overall and in the tail, with mean periods.

A trial contributes one value per metric, also for tails: periods within a trial are correlated, trials are independent.

Source: `ldos:control_cycle`, `ldos:sim_step`; without these, publications of joint states and of the
clock. Periods are measured in trace time, never taken from the loops' own arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pytest_ldos.base.series import Better, Missing
from pytest_ldos.base.text import NS_PER_MS, NS_PER_S
from pytest_ldos.measure.metrics.model import (
    CONTROL_PROBE,
    PRIMARY_SHARE,
    SECONDARY_SHARE,
    SIMULATOR_PROBE,
    MeasuredMetric,
    Measurement,
    Source,
    TrialContext,
    Window,
    published_clock,
    published_states,
)
from pytest_ldos.trace.execution.model import TimesNs

_FEWEST_PERIODS: Final = 2
_OTHER_RATE: Final = 1.5  # largest ratio of the median periods of joint states and loop, if each cycle sends them
_FLOOR_OF_RATES: Final = 0.01  # default floor of mean periods, which differ by some thousandths between equal trials
_TOLERABLE_OF_RATES: Final = 0.1  # largest tolerable MDE of mean periods
_TOLERABLE_OF_TAILS: Final = 2.0  # likewise; between equal trials, their logarithm varies about twice as much

_NO_CYCLES: Final = "the trace has no control cycles meanwhile"
_NO_STEPS: Final = "the trace has no simulator steps in the trial"

Periods = tuple[npt.NDArray[np.float64], Source]  # periods of a loop within a window, in milliseconds, and their source


def _within(times: TimesNs, window: Window) -> slice:
    first = np.searchsorted(times, window[0], side="left")
    last = np.searchsorted(times, window[1], side="right")
    return slice(int(first), int(last))


def _published_most(context: TrialContext, topic: str, window: Window) -> TimesNs:
    """Publication times in the whole trace, of the window's busiest publisher."""
    none = np.empty(0, dtype=np.int64)
    by_publisher = context.model.publishers_times_ns(topic)
    return max(by_publisher, key=lambda times: len(times[_within(times, window)]), default=none)


def _control_periods(context: TrialContext, window: Window) -> Periods | Missing:
    if len(context.model.cycle_times_ns):
        return _enough(context.model.cycle_times_ns, window, CONTROL_PROBE, _NO_CYCLES)
    topic = context.interfaces.joint_states
    sent = _published_most(context, topic, window)
    periods = np.diff(sent[_within(sent, window)])
    if len(periods) < _FEWEST_PERIODS:
        return context.not_seen(f"the trace has no control cycles, nor joint states on {topic} meanwhile")
    if not 1 / _OTHER_RATE < float(np.median(np.diff(sent))) / context.nominal_period_ns < _OTHER_RATE:
        rates = f"{NS_PER_S / periods.mean():.0f} Hz, the loop runs at {NS_PER_S / context.nominal_period_ns:.0f} Hz"
        return Missing(f"the trace has no control cycles; {topic} does not show them: it comes at {rates}")
    return _enough(sent, window, published_states(topic), _NO_CYCLES)


def _step_periods(context: TrialContext, window: Window) -> Periods | Missing:
    model, topic = context.model, context.interfaces.clock
    if len(model.step_times_ns):
        return _enough(model.step_times_ns, window, SIMULATOR_PROBE, _NO_STEPS)
    published = _published_most(context, topic, window)
    if not len(published):
        return context.not_seen(f"the trace has no simulator: neither its steps nor publications on {topic}")
    return _enough(published, window, published_clock(topic), _NO_STEPS)


def _enough(times: TimesNs, window: Window, source: Source, otherwise: str) -> Periods | Missing:
    periods = np.diff(times[_within(times, window)]) / NS_PER_MS
    return Missing(otherwise) if len(periods) < _FEWEST_PERIODS else (periods, source)


def _statistic(
    find_periods: Callable[[TrialContext, Window], Periods | Missing],
    value: Callable[[TrialContext, npt.NDArray[np.float64]], Any],
    details: Callable[[TrialContext, Window, Periods], Mapping[str, float]] = lambda *_: {},
) -> Callable[[TrialContext, Window], Measurement]:
    def measure(context: TrialContext, window: Window) -> Measurement:
        found = find_periods(context, window)
        if isinstance(found, Missing):
            return Measurement(found)
        periods, source = found
        return Measurement(float(value(context, periods)), details(context, window, found), source)

    return measure


def _deviation(context: TrialContext, periods: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.abs(periods - context.nominal_period_ns / NS_PER_MS)


def _control_details(context: TrialContext, _: Window, found: Periods) -> Mapping[str, float]:
    """Includes the standard deviation, which does not show a wrong but steady rate."""
    periods, deviation = found[0], _deviation(context, found[0])
    return {
        "std_ms": float(periods.std()),
        "mean_rate_hz": float(1000 / periods.mean()),
        "p99_ms": float(np.percentile(deviation, 99)),
        "worst_ms": float(deviation.max()),
        "misses": float(np.count_nonzero(periods > 2 * (context.nominal_period_ns / NS_PER_MS))),
    }


def _step_details(context: TrialContext, window: Window, found: Periods) -> Mapping[str, float]:
    """Includes the ratio of simulated to real time, which only the simulator's own steps show."""
    periods, source = found
    details = {
        "mean_ms": float(periods.mean()),
        "p99_ms": float(np.percentile(periods, 99)),
        "worst_ms": float(periods.max()),
    }
    if source == SIMULATOR_PROBE:
        steps = _within(context.model.step_times_ns, window)
        simulated_ns = np.ptp(context.model.sim_steps["sim_time_ns"].to_numpy()[steps])
        details["real_time_factor"] = float(simulated_ns / np.ptp(context.model.step_times_ns[steps]))
    return details


def nominal_period_ns(rate_hz: float) -> int:
    return round(NS_PER_S / rate_hz)


_of_loop: Final = partial(MeasuredMetric, unit="ms", better=Better.LOWER, window=TrialContext.execution_window)
_of_simulator: Final = partial(_of_loop, window=TrialContext.trial_window)

T3: Final = _of_loop(
    name="T3",
    title="control-loop jitter",
    error_share=PRIMARY_SHARE / 2,
    score_weight=0.5,
    measure=_statistic(
        _control_periods, lambda context, found: np.sqrt(np.mean(_deviation(context, found) ** 2)), _control_details
    ),
    definition="root mean square of (period − nominal period, 2 ms at 500 Hz) of the control loop while the arm moves, "
    "or in the whole trial where nothing tells when",
)

T3_MEAN: Final = _of_loop(
    name="T3mean",
    title="control-loop period, mean",
    error_share=PRIMARY_SHARE / 2,
    largest_tolerable_mde=_TOLERABLE_OF_RATES,
    usual_floor=_FLOOR_OF_RATES,
    measure=_statistic(_control_periods, lambda _, found: found.mean()),
    definition="mean period of the control loop while the arm moves, or in the whole trial where nothing tells when",
    refines="T3",
    in_sweeps=False,
)

T3_P90: Final = _of_loop(
    name="T3p90",
    title="control-loop jitter, p90",
    error_share=PRIMARY_SHARE / 3,
    largest_tolerable_mde=_TOLERABLE_OF_TAILS,
    measure=_statistic(_control_periods, lambda context, found: np.percentile(_deviation(context, found), 90)),
    definition="90th percentile in a trial of the deviation from the nominal period, unmoved by a few late periods",
    refines="T3",
    in_sweeps=False,
)

T3_P99: Final = _of_loop(
    name="T3p99",
    title="control-loop jitter, p99",
    error_share=SECONDARY_SHARE,
    largest_tolerable_mde=_TOLERABLE_OF_TAILS,
    measure=_statistic(_control_periods, lambda context, found: np.percentile(_deviation(context, found), 99)),
    definition="99th percentile in a trial of the deviation from the nominal period",
    refines="T3",
    stage="control loop",
)

T5: Final = _of_simulator(
    name="T5",
    title="simulation-step deviation",
    error_share=PRIMARY_SHARE / 3,
    score_weight=0.3,
    measure=_statistic(_step_periods, lambda _, found: found.std(), _step_details),
    definition="standard deviation of the time between steps",
)

T5_MEAN: Final = _of_simulator(
    name="T5mean",
    title="simulation step, mean",
    error_share=PRIMARY_SHARE / 2,
    largest_tolerable_mde=_TOLERABLE_OF_RATES,
    usual_floor=_FLOOR_OF_RATES,
    measure=_statistic(_step_periods, lambda _, found: found.mean()),
    definition="mean time between steps: below real time, it is longer than the step that is simulated",
    refines="T5",
    in_sweeps=False,
)

# Of the deviation: the time between steps is mostly the nominal one, and twice the deviation hardly changes its ratio.
T5_P99: Final = _of_simulator(
    name="T5p99",
    title="simulation-step deviation, p99",
    error_share=SECONDARY_SHARE,
    largest_tolerable_mde=_TOLERABLE_OF_TAILS,
    measure=_statistic(_step_periods, lambda _, found: np.percentile(np.abs(found - found.mean()), 99)),
    definition="99th percentile in a trial of the deviation of steps from their mean",
    refines="T5",
    stage="simulation step",
    in_sweeps=False,
)
