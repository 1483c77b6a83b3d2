"""Execution model: what ran, rebuilt from a trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pytest_ldos.base.tracepoints import Phase
from pytest_ldos.trace.ctf.stats import ReadStats

if TYPE_CHECKING:
    import polars as pl

    from pytest_ldos.trace.execution.coverage import Coverage

TimesNs = npt.NDArray[np.int64]
"""Nanoseconds since the epoch, in order; shape ``(n,)``."""

Frames = dict[str, "pl.DataFrame"]
"""Tables by name; columns as in `execution.schema`."""


@dataclass(frozen=True)
class Plan:
    """Trajectory planned for a goal (``ldos:plan``)."""

    duration_ns: int
    points: int


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """A goal that was planned and not executed, from the begin of planning to the result.

    Attributes:
        cpu_work_ns: see `TrialSpan`.
    """

    begin_ns: int
    end_ns: int
    cpu_work_ns: int | None


@dataclass(frozen=True, kw_only=True)
class TrialSpan:
    """One trial, from its markers or from the publications of its action server.

    Attributes:
        cpu_work_ns: duration of a fixed computation on the planner's CPU right before or at the start of planning
            (``ldos:cpu_speed``); ``None`` if it was not timed.
        phases: time at which each phase was entered, nanoseconds since the epoch.
        end_ns, error_code: from ``ldos:trial_end``; ``None`` where the trial has no end.
        marked: True if the values come from markers. Otherwise scenario, plan and outcome are unknown, and
            only phases visible in publications are present.
        plan_requests: those after this trial and before the next one.
        is_stamped: True if the goal's sender stamped the phases with the trace's clock; such a trial is as complete as
            a marked one, without events in the trace.

    Tracepoints: ``ldos:trial_begin``, ``ldos:phase``, ``ldos:plan``, ``ldos:cpu_speed``, ``ldos:trial_end``.
    """

    goal_id: str
    scenario: str
    index: int
    begin_ns: int
    phases: Mapping[Phase, int]
    plan: Plan | None
    end_ns: int | None
    error_code: int | None
    cpu_work_ns: int | None = None
    marked: bool = True
    plan_requests: tuple[PlanRequest, ...] = ()
    is_stamped: bool = False

    @property
    def first_phase(self) -> Phase:
        """First phase of the goal: sent, or accepted where no marker reports the sending."""
        return Phase.GOAL_SENT if self.marked else Phase.GOAL_ACCEPTED


@dataclass(frozen=True)
class Tables:
    """Tables of a model; `execution.schema` describes their columns.

    Entities first, then instances, in time order.
    """

    hosts: pl.DataFrame
    processes: pl.DataFrame
    threads: pl.DataFrame
    nodes: pl.DataFrame
    publishers: pl.DataFrame
    subscriptions: pl.DataFrame
    services: pl.DataFrame
    clients: pl.DataFrame
    timers: pl.DataFrame
    callbacks: pl.DataFrame
    state_machines: pl.DataFrame
    actions: pl.DataFrame
    executors: pl.DataFrame
    link_annotations: pl.DataFrame
    publications: pl.DataFrame
    takes: pl.DataFrame
    enqueues: pl.DataFrame
    callback_runs: pl.DataFrame
    waits: pl.DataFrame
    executions: pl.DataFrame
    requests: pl.DataFrame
    transitions: pl.DataFrame
    trial_spans: pl.DataFrame
    phases: pl.DataFrame
    plan_requests: pl.DataFrame
    planning_stages: pl.DataFrame
    control_cycles: pl.DataFrame
    sim_steps: pl.DataFrame
    missing_spans: pl.DataFrame

    def frames(self) -> Frames:
        """All tables by name."""
        return {field.name: getattr(self, field.name) for field in fields(Tables)}


@dataclass(frozen=True)
class MissingEvent:
    """An event that some processes did not write, although other events of theirs imply it.

    Attributes:
        event: its name.
        processes: these processes.
        effect: what is unknown without it.
        hides: tables of the model that lack rows without it.
    """

    event: str
    processes: tuple[int, ...]
    effect: str
    hides: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExecutionModel(Tables):
    """Entities and instances of the observed processes, as tables.

    Attributes:
        stats: statistics of reading, with the losses of the trace.
        unknown: number of entities of each table without an init event, because tracing began
            later; tables without any are omitted.
        unpaired: number of events that lack their counterpart, by kind.
        missing_events: events that processes should have written but did not.
    """

    stats: ReadStats
    unknown: Mapping[str, int]
    unpaired: Mapping[str, int]
    missing_events: tuple[MissingEvent, ...]

    @cached_property
    def trials(self) -> Mapping[str, TrialSpan]:
        """Trials by goal id, ordered by begin."""
        requests = self._plan_requests_by_trial()
        phases: dict[str, dict[Phase, int]] = {}
        for goal_id, phase, time_ns in self.phases.select("goal_id", "phase", "time_ns").iter_rows():
            phases.setdefault(goal_id, {})[Phase(phase)] = time_ns
        return {
            row["goal_id"]: TrialSpan(
                goal_id=row["goal_id"],
                scenario=row["scenario"],
                index=row["index"],
                begin_ns=row["begin_ns"],
                phases=phases.get(row["goal_id"], {}),
                plan=None if row["planned_ns"] is None else Plan(row["planned_ns"], row["points"]),
                end_ns=row["end_ns"],
                error_code=row["error_code"],
                cpu_work_ns=row["cpu_work_ns"],
                plan_requests=tuple(requests.get(row["goal_id"], ())),
            )
            for row in self.trial_spans.iter_rows(named=True)
        }

    def _plan_requests_by_trial(self) -> dict[str, list[PlanRequest]]:
        """Planning-only requests by the goal id of the preceding trial."""
        begins = self.trial_spans["begin_ns"].to_numpy()
        goals = self.trial_spans["goal_id"].to_list()
        found: dict[str, list[PlanRequest]] = {}
        for row in self.plan_requests.iter_rows(named=True):
            after = int(np.searchsorted(begins, row["begin_ns"])) - 1
            if after >= 0:
                request = PlanRequest(begin_ns=row["begin_ns"], end_ns=row["end_ns"], cpu_work_ns=row["cpu_work_ns"])
                found.setdefault(goals[after], []).append(request)
        return found

    @cached_property
    def extent_ns(self) -> tuple[int, int]:
        """Times of the earliest and the latest record; 0 without any."""
        names = ("born_ns", "time_ns", "start_ns", "end_ns")
        columns = [
            frame[name]
            for key, frame in self.frames().items()
            if key != "missing_spans"
            for name in names
            if name in frame.columns
        ]
        times = [int(time) for column in columns for time in (column.min(), column.max()) if isinstance(time, int)]
        return min(times, default=0), max(times, default=0)

    @cached_property
    def coverage(self) -> Coverage:
        """Times at which the processes are whole."""
        from pytest_ldos.trace.execution.coverage import Coverage  # noqa: PLC0415 - the model itself needs no frames

        return Coverage(self.missing_spans)

    @cached_property
    def cycle_times_ns(self) -> TimesNs:
        """Begin of each control cycle."""
        return self.control_cycles["time_ns"].to_numpy()

    @cached_property
    def step_times_ns(self) -> TimesNs:
        """End of each simulator step."""
        return self.sim_steps["time_ns"].to_numpy()

    def publication_times_ns(self, topic: str) -> TimesNs:
        """Times of all publications on a topic, of any publisher."""
        import polars as pl  # noqa: PLC0415 - the model itself needs no frames

        publishers = self.publishers.filter(pl.col("topic") == topic)["id"]
        published = self.publications.filter(pl.col("publisher").is_in(publishers.implode()))
        return published["time_ns"].to_numpy()

    def publishers_times_ns(self, topic: str) -> list[TimesNs]:
        """Times of publications on a topic, one array per publisher that published on it."""
        import polars as pl  # noqa: PLC0415 - the model itself needs no frames

        publishers = self.publishers.filter(pl.col("topic") == topic)["id"]
        published = self.publications.filter(pl.col("publisher").is_in(publishers.implode()))
        return [each["time_ns"].to_numpy() for each in published.partition_by("publisher", maintain_order=True)]

    def topics(self) -> list[str]:
        """Names of the topics that have a publisher or a subscription, sorted."""
        names = {*self.publishers["topic"].drop_nulls(), *self.subscriptions["topic"].drop_nulls()}
        return sorted(names)
