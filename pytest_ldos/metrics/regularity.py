"""T3 and T5: how regularly the control loop and the simulator ran.

Source: `ldos:control_cycle`, `ldos:sim_step`; periods by trace time, never by what the
loops themselves say of their periods.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from pytest_ldos.execution.model import TimesNs
from pytest_ldos.metrics.model import Context, Measurement, Metric, Window
from pytest_ldos.metrics.windows import execution_window, trial_window
from pytest_ldos.series import Better, Missing
from pytest_ldos.units import NS_PER_MS, NS_PER_S

_FEWEST_PERIODS: Final = 2


def _within(times: TimesNs, window: Window) -> slice:
    first = np.searchsorted(times, window[0], side="left")
    last = np.searchsorted(times, window[1], side="right")
    return slice(int(first), int(last))


def _periods_ms(times: TimesNs) -> npt.NDArray[np.float64]:
    return np.diff(times) / NS_PER_MS


def _control_jitter(context: Context, window: Window) -> Measurement:
    """Root mean square deviation of the period from the nominal one.

    Beside it the standard deviation, which does not see a rate that is wrong but steady.
    """
    periods = _periods_ms(context.model.cycle_times_ns[_within(context.model.cycle_times_ns, window)])
    if len(periods) < _FEWEST_PERIODS:
        return Measurement(Missing("the trace has no control cycles in the execution window"))
    nominal = context.nominal_period_ns / NS_PER_MS
    deviation = np.abs(periods - nominal)
    details = {
        "std_ms": float(periods.std()),
        "mean_rate_hz": float(1000 / periods.mean()),
        "p99_ms": float(np.percentile(deviation, 99)),
        "worst_ms": float(deviation.max()),
        "misses": float(np.count_nonzero(periods > 2 * nominal)),
    }
    return Measurement(float(np.sqrt(np.mean(deviation**2))), details)


def _step_deviation(context: Context, window: Window) -> Measurement:
    """Standard deviation of the time between simulator steps."""
    steps = _within(context.model.step_times_ns, window)
    times = context.model.step_times_ns[steps]
    periods = _periods_ms(times)
    if len(periods) < _FEWEST_PERIODS:
        return Measurement(Missing("the trace has no simulator steps in the trial"))
    simulated_ns = np.ptp(context.model.sim_steps["sim_time_ns"].to_numpy()[steps])
    details = {
        "mean_ms": float(periods.mean()),
        "p99_ms": float(np.percentile(periods, 99)),
        "worst_ms": float(periods.max()),
        "real_time_factor": float(simulated_ns / (times[-1] - times[0])),
    }
    return Measurement(float(periods.std()), details)


def nominal_period_ns(rate_hz: float) -> int:
    """Whole nanoseconds of a rate's period."""
    return round(NS_PER_S / rate_hz)


T3: Final = Metric(
    name="T3",
    title="control-loop jitter",
    unit="ms",
    better=Better.LOWER,
    censored_by_failure=False,
    largest_tolerable_mde=1.0,
    window=execution_window,
    measure=_control_jitter,
)

T5: Final = Metric(
    name="T5",
    title="simulation-step deviation",
    unit="ms",
    better=Better.LOWER,
    censored_by_failure=False,
    largest_tolerable_mde=1.0,
    window=trial_window,
    measure=_step_deviation,
)
