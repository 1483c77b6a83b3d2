"""Markers to trials."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pytest_ldos.execution.model import Plan, TrialSpan
from pytest_ldos.execution.tables import Observed
from pytest_ldos.tracepoints import Marker, Phase


def build_trials(observed: Observed) -> dict[str, TrialSpan]:
    """Trials by goal id. A phase counts when it is entered first.

    Tracepoints: ``ldos:trial_begin``, ``ldos:phase``, ``ldos:plan``, ``ldos:cpu_speed``,
    ``ldos:trial_end``.
    """
    speeds = [(time_ns, row["work_ns"]) for time_ns, row in _rows(observed, Marker.CPU_SPEED)]
    phases = _phases_by_goal(observed)
    plans = {row["goal_id"]: Plan(row["duration_ns"], row["points"]) for _, row in _rows(observed, Marker.PLAN)}
    ends = {row["goal_id"]: (time_ns, row["error_code"]) for time_ns, row in _rows(observed, Marker.TRIAL_END)}
    trials = {}
    for time_ns, row in _rows(observed, Marker.TRIAL_BEGIN):
        goal_id = row["goal_id"]
        end_ns, error_code = ends.get(goal_id, (None, None))
        trials[goal_id] = TrialSpan(
            goal_id=goal_id,
            scenario=row["scenario"],
            index=row["index"],
            begin_ns=time_ns,
            phases=phases.get(goal_id, {}),
            plan=plans.get(goal_id),
            cpu_work_ns=_work_before_planning(phases.get(goal_id, {}), speeds),
            end_ns=end_ns,
            error_code=error_code,
        )
    return trials


def _phases_by_goal(observed: Observed) -> dict[str, dict[Phase, int]]:
    known = {phase.value for phase in Phase}
    phases: dict[str, dict[Phase, int]] = {}
    for time_ns, row in _rows(observed, Marker.PHASE):
        if row["phase"] in known:
            phases.setdefault(row["goal_id"], {}).setdefault(Phase(row["phase"]), time_ns)
    return phases


def _work_before_planning(phases: dict[Phase, int], speeds: list[tuple[int, int]]) -> int | None:
    """The last fixed computation that was timed after the goal was sent and before its planning was seen."""
    if Phase.GOAL_SENT not in phases or Phase.PLANNING not in phases:
        return None
    within = [work_ns for time_ns, work_ns in speeds if phases[Phase.GOAL_SENT] <= time_ns <= phases[Phase.PLANNING]]
    return within[-1] if within else None


def _rows(observed: Observed, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Time and fields of each event; markers are few."""
    table = observed.table(name)
    if table is None:
        return
    for row in observed.rows(table):
        yield int(table.timestamp_ns[row]), {key: column[row] for key, column in table.columns.items()}
