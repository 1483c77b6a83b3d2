"""Trials, action goals, service calls, lifecycle transitions, and annotated causal links.

Tracepoints: ``ldos:trial_begin``, ``ldos:phase``, ``ldos:plan``, ``ldos:cpu_speed``, ``ldos:planning_stage``,
``ldos:trial_end``, ``ldos:control_cycle``, ``ldos:sim_step``; ``rmw_send_request``, ``rmw_take_request``,
``rmw_send_response``, ``rmw_take_response``; ``rcl_lifecycle_transition``; ``message_link_periodic_async``,
``message_link_partial_sync``: rcl handles of subscriptions whose messages are used for the publications of the given
publishers.

An action has no events of its own in ROS 2 Jazzy, and no event carries a goal's id or outcome. Its services and
topics are named ``ACTION/_action/…``. A server publishes the goals' status when it accepts a goal and when a goal
ends, and feedback in between (``rmw_publish`` on ``ACTION/_action/status`` and ``ACTION/_action/feedback``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import polars as pl

from pytest_ldos.base.ros2 import FIELDS, Caret, LinkRule, Marker, Phase, Ros2
from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.trace.execution.columns import Columns, frame_of, in_time_order
from pytest_ldos.trace.execution.endpoints import Endpoints
from pytest_ldos.trace.execution.model import ENTITIES, INSTANCES, ExecutionModel, Frames
from pytest_ldos.trace.execution.observed import Events, Observed

_FROM_SENDING_TO_PLANNED: Final = (Phase.GOAL_SENT, Phase.EXECUTING, Phase.RESULT)
"""Sending, end of planning, and its substitute for a goal that was not planned or not executed."""


def build_trials(observed: Observed) -> Frames:
    """Tables of trials and their planning. Of repeated phases, the first entry counts."""
    events = observed.events(Marker.PHASE)
    entered = events.table("phases", goal_id=events.texts("goal_id"), phase=events.texts("phase"))
    known = entered.filter(pl.col("phase").is_in([phase.value for phase in Phase]))
    phases = known.unique(["goal_id", "phase"], keep="first", maintain_order=True)
    events = observed.events(Marker.PLANNING_STAGE)
    ended_ns, names = events.times_ns - events["ago_ns"], events.texts("stage")
    stages = events.table("planning_stages", time_ns=ended_ns, name=names).sort("time_ns", maintain_order=True)
    spans = _trial_spans(observed, phases)
    of_others = phases.join(spans, "goal_id", "anti")
    executed = of_others.filter(pl.col("phase") == Phase.EXECUTING.value)
    only_planned = of_others.join(executed, "goal_id", "anti")
    return {
        "trial_spans": spans,
        "phases": phases.join(only_planned, "goal_id", "anti"),
        "plan_requests": _plan_requests(observed, only_planned),
        "planning_stages": stages,
        "header_stamps": _header_stamps(observed),
    }


def _header_stamps(observed: Observed) -> pl.DataFrame:
    fields = {Marker.HEADER_STAMP: "stamp_ns", Caret.DISPATCH: "message_timestamp"}
    events = [(observed.events(event), field) for event, field in fields.items()]
    frames = [some.table("header_stamps", stamp_ns=some.optional(field, 0).astype(np.int64)) for some, field in events]
    return pl.concat(frames).filter(pl.col("stamp_ns") > 0).sort("time_ns", maintain_order=True)


def build_ticks(observed: Observed) -> dict[str, Columns]:
    """Tables of control cycles and simulator steps, whose columns are the fields of a marker."""
    found = {}
    for table, marker in (("control_cycles", Marker.CONTROL_CYCLE), ("sim_steps", Marker.SIM_STEP)):
        events = observed.events(marker)
        kinds = {name: np.uint64 if kind is pl.UInt64 else np.int64 for name, kind in INSTANCES[table].items()}
        found[table] = events.timed(**{name: events[name].astype(kinds[name]) for name in FIELDS[marker]})
    return found


def _trial_spans(observed: Observed, phases: pl.DataFrame) -> pl.DataFrame:
    begins = observed.events(Marker.TRIAL_BEGIN)
    planned, ended = observed.events(Marker.PLAN), observed.events(Marker.TRIAL_END)
    columns = {"scenario": begins.texts("scenario"), "index": begins["index"]}
    spans = _last(begins, **columns, begin_ns=begins.times_ns, thread=begins.thread)
    plans = _last(planned, planned_ns=planned["duration_ns"], points=planned["points"])
    ends = _last(ended, error_code=ended["error_code"], end_ns=ended.times_ns)
    spans = spans.join(plans, "goal_id", "left").join(ends, "goal_id", "left").sort("begin_ns", maintain_order=True)
    return _complete(spans, "trial_spans", phases, observed)


def _plan_requests(observed: Observed, phases: pl.DataFrame) -> pl.DataFrame:
    """Goals that were planned successfully and not executed, from the phases of those that are no trials."""
    entered = {
        phase: phases.filter(pl.col("phase") == phase.value).select("goal_id", "thread", pl.col("time_ns").alias(name))
        for phase, name in ((Phase.PLANNING, "begin_ns"), (Phase.RESULT, "end_ns"))
    }
    planned = _last(observed.events(Marker.PLAN)).join(entered[Phase.RESULT].drop("thread"), "goal_id")
    requests = entered[Phase.PLANNING].join(planned, "goal_id").sort("begin_ns", maintain_order=True)
    return _complete(requests, "plan_requests", phases, observed)


def _complete(goals: pl.DataFrame, table: str, phases: pl.DataFrame, observed: Observed) -> pl.DataFrame:
    goals = goals.with_columns(_work_of_planning(goals, phases, observed.events(Marker.CPU_SPEED)))
    return goals.select(pl.col(name).cast(kind) for name, kind in INSTANCES[table].items())


def _last(events: Events, **columns: Any) -> pl.DataFrame:
    goals = pl.Series(events.texts("goal_id"), dtype=pl.String)
    return pl.DataFrame({"goal_id": goals, **columns}).unique("goal_id", keep="last", maintain_order=True)


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


_RULES: Final = {Ros2.LINK_PERIODIC_ASYNC: LinkRule.PERIODIC_ASYNC, Ros2.LINK_PARTIAL_SYNC: LinkRule.PARTIAL_SYNC}


def build_link_annotations(observed: Observed, endpoints: Endpoints) -> tuple[pl.DataFrame, int]:
    """One row per annotation, with lists of ids, and the number of unknown handles."""
    registries = (endpoints.subscriptions_by_rcl, endpoints.publishers_by_rcl)
    rows: list[tuple[Any, ...]] = []
    unknown = 0
    for name, rule in _RULES.items():
        events = observed.events(name)
        subject = zip(events.process.tolist(), events.times_ns.tolist(), strict=True)
        for (process, time_ns), *handles in zip(subject, events.lists("subs"), events.lists("pubs"), strict=True):
            found = []
            for registry, some in zip(registries, handles, strict=True):
                owners, times_ns = (np.full(len(some), value) for value in (process, time_ns))
                ids = registry.find(owners, np.array(some, dtype=np.uint64), times_ns)
                unknown += int(np.count_nonzero(ids < 0))
                found.append(ids[ids >= 0].tolist())
            rows.append((len(rows), str(rule), process, time_ns, *found))
    schema = {**ENTITIES["link_annotations"], **dict.fromkeys(("subscriptions", "publishers"), pl.List(pl.Int32))}
    return pl.DataFrame(rows, schema=schema, orient="row"), unknown


SEND_GOAL: Final = "/_action/send_goal"


def build_actions(services: pl.DataFrame, clients: pl.DataFrame) -> pl.DataFrame:
    tables = (("server", services), ("client", clients))
    ends = pl.concat(table.select("node", "name", role=pl.lit(role)) for role, table in tables)
    own = ends.filter(pl.col("name").str.ends_with(SEND_GOAL))
    return frame_of(ENTITIES["actions"], own.with_columns(pl.col("name").str.strip_suffix(SEND_GOAL)).to_dict())


STATUS: Final = "/_action/status"
FEEDBACK: Final = "/_action/feedback"

_FURTHEST_NS: Final = NS_PER_S  # longest time between a goal's acceptance and its first feedback


@dataclass(frozen=True, kw_only=True)
class ActionGoal:
    """Goal with at least one feedback message; feedback after its end is left out."""

    accepted_ns: int | None  # time of the first status of the goal; ``None`` if not in the trace
    feedback_ns: tuple[int, ...]
    result_ns: int | None  # time of the status that reports its end; ``None`` if not in the trace

    @property
    def begin_ns(self) -> int:
        """Time of the earliest publication about the goal in the trace."""
        first_ns = self.feedback_ns[0]
        return first_ns if self.accepted_ns is None else min(first_ns, self.accepted_ns)


def find_action_goals(model: ExecutionModel, action: str) -> list[ActionGoal]:
    """Goals of an action (``/move_action``), ordered by begin.

    The action's server must execute each goal on one thread, as MoveIt's does; that thread publishes the goal's
    feedback and its end. Other threads may accept goals and cancel requests. An rclcpp server reports acceptance
    before it executes the goal; the embedded stack's server may report it right after the first feedback.
    """
    topics = model.publishers.select(publisher="id", topic="topic")
    own = topics.filter(pl.col("topic").is_in([action + STATUS, action + FEEDBACK]))
    published = model.publications.join(own, on="publisher", maintain_order="left")
    found = published.select("time_ns", "thread", is_status=pl.col("topic") == action + STATUS)
    running: dict[int, ActionGoal] = {}  # by thread
    ended: list[ActionGoal] = []
    just_ended: set[int] = set()  # threads whose next feedback is MoveIt's ``IDLE`` after a goal's end
    acceptance_ns: int | None = None
    for time_ns, thread, is_status in found.iter_rows():
        goal = running.get(thread)
        if is_status and goal is not None:
            ended.append(replace(running.pop(thread), result_ns=time_ns))
            just_ended.add(thread)
        elif is_status:  # an acceptance or a cancel request
            just_ended.discard(thread)
            for other, each in running.items():
                has_just_begun = each.accepted_ns is None and len(each.feedback_ns) == 1
                if has_just_begun and time_ns - each.begin_ns <= _FURTHEST_NS:
                    running[other] = replace(each, accepted_ns=time_ns)
                    break
            else:
                acceptance_ns = time_ns
        elif goal is not None:
            running[thread] = replace(goal, feedback_ns=(*goal.feedback_ns, time_ns))
        elif thread in just_ended:
            just_ended.discard(thread)
        else:
            is_recent = acceptance_ns is not None and time_ns - acceptance_ns <= _FURTHEST_NS
            accepted_ns = acceptance_ns if is_recent else None
            running[thread] = ActionGoal(accepted_ns=accepted_ns, feedback_ns=(time_ns,), result_ns=None)
            acceptance_ns = None
    return sorted(ended + list(running.values()), key=lambda goal: goal.begin_ns)


_STEPS: Final = {
    Ros2.RMW_SEND_REQUEST: "send_request",
    Ros2.RMW_TAKE_REQUEST: "take_request",
    Ros2.RMW_SEND_RESPONSE: "send_response",
    Ros2.RMW_TAKE_RESPONSE: "take_response",
}
_OF_CLIENT: Final = ("send_request", "take_response")


def build_requests(observed: Observed, endpoints: Endpoints) -> Columns:
    """One row per step, in time order, without takes that returned nothing."""
    return in_time_order([_steps(observed.events(name), step, endpoints) for name, step in _STEPS.items()])


def _steps(events: Events, step: str, endpoints: Endpoints) -> Columns:
    client = service = np.full(len(events), -1, dtype=np.int32)
    if step in _OF_CLIENT:
        client = endpoints.rmw_clients.find(events.process, events.handles("rmw_client_handle"), events.times_ns)
    else:
        service = endpoints.rmw_services.find(events.process, events.handles("rmw_service_handle"), events.times_ns)
    gids = [None] * len(events) if step in _OF_CLIENT else events.hexadecimals("client_gid")
    columns = events.timed(
        step=np.full(len(events), step, dtype=object),
        client=client,
        service=service,
        client_gid=np.array(gids, dtype=object),
        sequence=events["sequence_number"].astype(np.int64),
    )
    is_step = events["taken"] != 0 if step.startswith("take_") else slice(None)
    return {name: values[is_step] for name, values in columns.items()}


def build_transitions(observed: Observed, endpoints: Endpoints) -> pl.DataFrame:
    events = observed.events(Ros2.LIFECYCLE_TRANSITION)
    machines = endpoints.state_machines.registry
    return events.table(
        "transitions",
        state_machine=machines.resolve(events.process, events.handles("state_machine"), events.times_ns),
        from_state=events.texts("start_label"),
        to_state=events.texts("goal_label"),
    )
