"""A decoded trace to the model of what ran in it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np

from pytest_ldos.ctf.read import DecodedTrace
from pytest_ldos.execution.model import ExecutionModel, TimesNs
from pytest_ldos.execution.publications import build_publications
from pytest_ldos.execution.tables import Observed
from pytest_ldos.execution.trials import build_trials
from pytest_ldos.tracepoints import Marker, Ros2

NEEDED_EVENTS: Final = frozenset({*Marker, Ros2.PUBLISHER_INIT, Ros2.RMW_PUBLISH})
"""What `build_execution` reads; give it to `read_trace` as `events` and nothing else is decoded."""


def build_execution(trace: DecodedTrace, *, pids: Collection[int] | None = None) -> ExecutionModel:
    """The model of a trace.

    Args:
        pids: processes to observe; all by default. Give the stack's own: another stack or
            a load may be in the same trace.
    """
    observed = Observed(trace, pids)
    steps = observed.table(Marker.SIM_STEP)
    sim_times = np.empty(0, dtype=np.int64) if steps is None else steps["sim_time_ns"][observed.rows(steps)]
    return ExecutionModel(
        trials=build_trials(observed),
        control_cycles=_times(observed, Marker.CONTROL_CYCLE),
        sim_steps=_times(observed, Marker.SIM_STEP),
        sim_times_ns=sim_times,
        publications=build_publications(observed),
        stats=trace.stats,
    )


def _times(observed: Observed, name: str) -> TimesNs:
    table = observed.table(name)
    return np.empty(0, dtype=np.int64) if table is None else table.timestamp_ns[observed.rows(table)]
