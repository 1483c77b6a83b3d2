"""Splits T1 into time in which the planner ran, waited for a CPU, or was blocked.

The planner is the process that emits `ldos:cpu_speed`. perf must have recorded context switches: kernel events
alone do not tell which threads a process has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.base.tracepoints import Marker, Phase
from pytest_ldos.base.units import ns_to_ms
from pytest_ldos.measure.metrics.model import WAITED_FOR_STRANGERS
from pytest_ldos.trace.ctf.read import DecodedTrace
from pytest_ldos.trace.execution.model import TrialSpan
from pytest_ldos.trace.execution.waits import split_process
from pytest_ldos.trace.perf.switches import thread_owners

_PID: Final = "vpid"


class PlanningSplits:
    """Splits the planning of a trace's trials.

    Args:
        states: result of `build_thread_states`.
        own_side: processes of the measurement: the stack, loads, recorders, and this one.
    """

    def __init__(self, trace: DecodedTrace, states: pl.DataFrame, own_side: Collection[int]) -> None:
        self._states = states
        self._own_side = own_side
        self._owners = thread_owners(trace) if len(states) else {}
        timed = trace.events.get(Marker.CPU_SPEED)
        pids = np.unique(timed[_PID]).tolist() if timed is not None and _PID in timed.columns else []
        self._planner = pids[0] if len(pids) == 1 else None

    def of(self, trial: TrialSpan | None) -> Mapping[str, float]:
        """Parts of a trial's T1, ms; empty where they are not known.

        Names: ``ran_ms``, ``waited_for_own_ms``, ``waited_for_strangers_ms``, ``blocked_ms``. Time that no
        context switches cover is in none.
        """
        if trial is None or self._planner not in self._owners.values() or self._planner is None:
            return {}
        begin_ns, end_ns = (trial.phases.get(phase) for phase in (Phase.PLANNING, Phase.EXECUTING))
        if begin_ns is None or end_ns is None or end_ns < begin_ns:
            return {}
        found = split_process(
            self._states, self._owners, self._planner, begin_ns=begin_ns, end_ns=end_ns, own_side=self._own_side
        )
        if found.unknown == end_ns - begin_ns:
            return {}
        return {
            "ran_ms": ns_to_ms(found.ran),
            "waited_for_own_ms": ns_to_ms(found.own),
            WAITED_FOR_STRANGERS: ns_to_ms(found.strangers),
            "blocked_ms": ns_to_ms(found.blocked),
        }
