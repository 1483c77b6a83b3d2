"""Splits T1 and T1mean into time in which the planner ran, waited for a CPU, or was blocked.

The planner is the process that emits `ldos:cpu_speed`. perf must have recorded context switches: kernel events
alone do not tell which threads a process has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.base.tracepoints import Marker, Phase
from pytest_ldos.base.units import NS_PER_MS, ns_to_ms
from pytest_ldos.measure.metrics.model import PLANS_WAITED_FOR_STRANGERS, WAITED_FOR_STRANGERS
from pytest_ldos.measure.metrics.plans import geometric_mean_ms
from pytest_ldos.trace.ctf.read import DecodedTrace
from pytest_ldos.trace.execution.model import TrialSpan
from pytest_ldos.trace.execution.waits import ProcessSplit, split_process
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
        phases = {} if trial is None else trial.phases
        begin_ns, end_ns = (phases.get(phase) for phase in (Phase.PLANNING, Phase.EXECUTING))
        found = None if begin_ns is None or end_ns is None else self._split(begin_ns, end_ns)
        if found is None:
            return {}
        return {**_parts([found]), WAITED_FOR_STRANGERS: ns_to_ms(found.strangers)}

    def of_plans(self, trial: TrialSpan | None) -> Mapping[str, float]:
        """Parts of a trial's T1mean, ms; empty where they are not known of each of its plans.

        Names: ``ran_ms``, ``waited_for_own_ms`` and ``blocked_ms``, means of the plans;
        ``plans_waited_for_strangers_ms``: T1mean less what it is without these waits.
        """
        requests = () if trial is None else trial.plan_requests
        found = [each for request in requests if (each := self._split(request.begin_ns, request.end_ns)) is not None]
        if not found or len(found) < len(requests) or any(each.strangers >= each.whole for each in found):
            return {}
        raised = geometric_mean_ms([each.whole for each in found])
        taken = raised - geometric_mean_ms([each.whole - each.strangers for each in found])
        return {**_parts(found), PLANS_WAITED_FOR_STRANGERS: taken}

    def _split(self, begin_ns: int, end_ns: int) -> ProcessSplit | None:
        """Parts of the planner's time; ``None`` where nothing is known of it."""
        if self._planner is None or self._planner not in self._owners.values() or end_ns < begin_ns:
            return None
        found = split_process(
            self._states, self._owners, self._planner, begin_ns=begin_ns, end_ns=end_ns, own_side=self._own_side
        )
        return None if found.unknown == found.whole else found


def _parts(splits: Sequence[ProcessSplit]) -> dict[str, float]:
    """Means of the parts that are the planner's own, ms."""
    return {
        f"{name}_ms": float(np.mean([getattr(each, part) for each in splits])) / NS_PER_MS
        for name, part in (("ran", "ran"), ("waited_for_own", "own"), ("blocked", "blocked"))
    }
