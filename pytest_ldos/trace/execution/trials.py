"""Markers of provider `ldos`, and indirect causal links that an application annotates itself.

Tracepoints: ``ldos:trial_begin``, ``ldos:phase``, ``ldos:plan``, ``ldos:cpu_speed``, ``ldos:planning_stage``,
``ldos:trial_end``, ``ldos:control_cycle``, ``ldos:sim_step``.

Tracepoints: ``message_link_periodic_async``, ``message_link_partial_sync``: rcl handles of
subscriptions whose messages are used for the publications of the given publishers.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl

from pytest_ldos.base.tracepoints import Marker, Phase, Ros2
from pytest_ldos.trace.execution.columns import frame_of
from pytest_ldos.trace.execution.endpoints import Endpoints, Registry
from pytest_ldos.trace.execution.model import Frames
from pytest_ldos.trace.execution.observed import Events, Observed
from pytest_ldos.trace.execution.schema import ENTITIES, INSTANCES

_FROM_SENDING_TO_PLANNED: Final = (Phase.GOAL_SENT, Phase.EXECUTING, Phase.RESULT)
"""Sending, end of planning, and its substitute for a goal that was not planned or not executed."""


def build_trials(observed: Observed) -> Frames:
    """Tables of trials and their planning. Of repeated phases, the first entry counts."""
    phases = _phases(observed.events(Marker.PHASE))
    spans = _trial_spans(observed, phases)
    of_others = phases.join(spans, "goal_id", "anti")
    executed = of_others.filter(pl.col("phase") == Phase.EXECUTING.value)
    only_planned = of_others.join(executed, "goal_id", "anti")
    return {
        "trial_spans": spans,
        "phases": phases.join(only_planned, "goal_id", "anti"),
        "plan_requests": _plan_requests(observed, only_planned),
        "planning_stages": _stages(observed.events(Marker.PLANNING_STAGE)),
    }


def build_ticks(observed: Observed) -> Frames:
    """Tables of control cycles and simulator steps."""
    return {
        "control_cycles": _numbers(observed.events(Marker.CONTROL_CYCLE), "control_cycles"),
        "sim_steps": _numbers(observed.events(Marker.SIM_STEP), "sim_steps"),
    }


def _numbers(events: Events, table: str) -> pl.DataFrame:
    """Table of a marker whose fields are columns of the same name."""
    own = {"time_ns": events.times_ns, "thread": events.thread}
    return frame_of(INSTANCES[table], own | {name: events[name] for name in INSTANCES[table] if name not in own})


def _phases(events: Events) -> pl.DataFrame:
    columns = {
        "goal_id": events.texts("goal_id"),
        "phase": events.texts("phase"),
        "time_ns": events.times_ns,
        "thread": events.thread,
    }
    known = pl.col("phase").is_in([phase.value for phase in Phase])
    entered = frame_of(INSTANCES["phases"], columns).filter(known)
    return entered.unique(["goal_id", "phase"], keep="first", maintain_order=True)


def _stages(events: Events) -> pl.DataFrame:
    ended_ns = events.times_ns - events["ago_ns"]
    columns = {"time_ns": ended_ns, "thread": events.thread, "name": events.texts("stage")}
    return frame_of(INSTANCES["planning_stages"], columns).sort("time_ns", maintain_order=True)


def _trial_spans(observed: Observed, phases: pl.DataFrame) -> pl.DataFrame:
    begins = observed.events(Marker.TRIAL_BEGIN)
    spans = pl.DataFrame(
        {
            "goal_id": pl.Series(begins.texts("goal_id"), dtype=pl.String),
            "scenario": pl.Series(begins.texts("scenario"), dtype=pl.String),
            "index": pl.Series(begins["index"], dtype=pl.Int64),
            "begin_ns": begins.times_ns,
            "thread": begins.thread,
        }
    ).unique("goal_id", keep="last", maintain_order=True)
    plans = _last(observed.events(Marker.PLAN), planned_ns="duration_ns", points="points")
    ends = _last(observed.events(Marker.TRIAL_END), error_code="error_code", end_ns=None)
    spans = spans.join(plans, "goal_id", "left").join(ends, "goal_id", "left").sort("begin_ns", maintain_order=True)
    return _complete(spans, "trial_spans", phases, observed)


def _plan_requests(observed: Observed, phases: pl.DataFrame) -> pl.DataFrame:
    """Goals that were planned successfully and not executed.

    Args:
        phases: phases of goals that are no trials and were not executed.
    """
    entered = {
        phase: phases.filter(pl.col("phase") == phase.value).select("goal_id", "thread", pl.col("time_ns").alias(name))
        for phase, name in ((Phase.PLANNING, "begin_ns"), (Phase.RESULT, "end_ns"))
    }
    planned = _last(observed.events(Marker.PLAN)).join(entered[Phase.RESULT].drop("thread"), "goal_id")
    requests = entered[Phase.PLANNING].join(planned, "goal_id").sort("begin_ns", maintain_order=True)
    return _complete(requests, "plan_requests", phases, observed)


def _complete(goals: pl.DataFrame, table: str, phases: pl.DataFrame, observed: Observed) -> pl.DataFrame:
    """A table of goals, with `cpu_work_ns`."""
    goals = goals.with_columns(_work_of_planning(goals, phases, observed.events(Marker.CPU_SPEED)))
    return goals.select(pl.col(name).cast(kind) for name, kind in INSTANCES[table].items())


def _last(events: Events, **columns: str | None) -> pl.DataFrame:
    """The last event of each goal. `columns` names the field of each column; ``None`` is the time."""
    values: dict[str, Any] = {
        name: events.times_ns if field is None else events[field] for name, field in columns.items()
    }
    goals = pl.Series(events.texts("goal_id"), dtype=pl.String)
    return pl.DataFrame({"goal_id": goals, **values}).unique("goal_id", keep="last", maintain_order=True)


def _work_of_planning(goals: pl.DataFrame, phases: pl.DataFrame, speeds: Events) -> pl.Series:
    """The last fixed computation timed between sending the goal and the end of its planning."""
    entered = {(goal_id, phase): time_ns for goal_id, phase, time_ns, _ in phases.iter_rows()}
    timed = list(zip(speeds.times_ns.tolist(), speeds["work_ns"].tolist(), strict=True))
    found = []
    for goal_id in goals["goal_id"]:
        sent, planned, failed = (entered.get((goal_id, phase)) for phase in _FROM_SENDING_TO_PLANNED)
        until = failed if planned is None else planned
        within = [] if sent is None or until is None else [work for at, work in timed if sent <= at <= until]
        found.append(within[-1] if within else None)
    return pl.Series("cpu_work_ns", found, dtype=pl.Int64)


PERIODIC_ASYNC: Final = "periodic_async"
PARTIAL_SYNC: Final = "partial_sync"

_RULES: Final = {Ros2.LINK_PERIODIC_ASYNC: PERIODIC_ASYNC, Ros2.LINK_PARTIAL_SYNC: PARTIAL_SYNC}


def build_link_annotations(observed: Observed, endpoints: Endpoints) -> tuple[pl.DataFrame, int]:
    """One row per annotation, with lists of ids, and the number of unknown handles."""
    rows: dict[str, list[Any]] = {"rule": [], "process": [], "time_ns": [], "subscriptions": [], "publishers": []}
    unknown = 0
    for name, rule in _RULES.items():
        events = observed.events(name)
        rows["rule"] += [rule] * len(events)
        rows["process"] += events.process.tolist()
        rows["time_ns"] += events.times_ns.tolist()
        for column, field, registry in (
            ("subscriptions", "subs", endpoints.subscriptions_by_rcl),
            ("publishers", "pubs", endpoints.publishers_by_rcl),
        ):
            ids = _ids(events, field, registry)
            unknown += sum(each < 0 for some in ids for each in some)
            rows[column] += [[each for each in some if each >= 0] for some in ids]
    lists: dict[str, Any] = {
        name: pl.Series(name, rows.pop(name), dtype=pl.List(pl.Int32)) for name in ("subscriptions", "publishers")
    }
    return frame_of(ENTITIES["link_annotations"], rows | lists), unknown


def _ids(events: Events, name: str, registry: Registry) -> list[list[int]]:
    found = []
    for process, time_ns, handles in zip(events.process, events.times_ns, events.lists(name), strict=True):
        some = np.array(handles, dtype=np.uint64)
        ids = registry.find(np.full(len(some), process), some, np.full(len(some), time_ns))
        found.append(ids.tolist())
    return found
