"""Execution model: what ran, rebuilt from a trace, as tables that Parquet files store.

`id` is a row's own number. A column named like a table in the singular (`publisher`, `thread`) holds the `id` of a row
of that table, null where there is none. Times end in `_ns`: nanoseconds since the epoch, or durations.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.files import PlainReader, writing
from pytest_ldos.base.parquet import FAULTS, digest_of, reason_of, write_table
from pytest_ldos.base.ros2 import Phase
from pytest_ldos.trace.ctf.stats import ReadStats

if TYPE_CHECKING:
    from pytest_ldos.trace.execution.coverage import Coverage


TimesNs = npt.NDArray[np.int64]  # nanoseconds since the epoch, in order; shape ``(n,)``
Frames = dict[str, pl.DataFrame]  # tables by name; columns as in `ENTITIES` and `INSTANCES`


@dataclass(frozen=True)
class Plan:
    """Trajectory planned for a goal (``ldos:plan``)."""

    duration_ns: int
    points: int


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """A goal that was planned and not executed, from the begin of planning to the result; see `TrialSpan`."""

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
    """Tables of a model; `ENTITIES` and `INSTANCES` describe their columns. Instances are in time order."""

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
    header_stamps: pl.DataFrame
    control_cycles: pl.DataFrame
    sim_steps: pl.DataFrame
    missing_spans: pl.DataFrame

    def frames(self) -> Frames:
        return {field.name: getattr(self, field.name) for field in fields(Tables)}


@dataclass(frozen=True)
class MissingEvent:
    """An event that some processes did not write, although other events of theirs imply it."""

    event: str
    processes: tuple[int, ...]
    effect: str  # what is unknown without it
    hides: tuple[str, ...] = ()  # tables of the model that lack rows without it


@dataclass(frozen=True)
class ExecutionModel(Tables):
    """Entities and instances of the observed processes, as tables.

    Attributes:
        unknown: number of entities of each table without an init event, because tracing began
            later; tables without any are omitted.
        unpaired: number of events that lack their counterpart, by kind.
    """

    stats: ReadStats
    unknown: Mapping[str, int]
    unpaired: Mapping[str, int]
    missing_events: tuple[MissingEvent, ...]

    @cached_property
    def trials(self) -> Mapping[str, TrialSpan]:
        """Trials by goal id, ordered by begin."""
        requests: dict[str, list[PlanRequest]] = {}  # by the trial before them
        begins, goals = self.trial_spans["begin_ns"].to_numpy(), self.trial_spans["goal_id"].to_list()
        for row in self.plan_requests.iter_rows(named=True):
            after = int(np.searchsorted(begins, row["begin_ns"])) - 1
            if after >= 0:
                request = PlanRequest(begin_ns=row["begin_ns"], end_ns=row["end_ns"], cpu_work_ns=row["cpu_work_ns"])
                requests.setdefault(goals[after], []).append(request)
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

    @cached_property
    def extent_ns(self) -> tuple[int, int]:
        """Times of the earliest and the latest record; 0 without any."""
        names = ("born_ns", "time_ns", "start_ns", "end_ns")
        frames = [frame for key, frame in self.frames().items() if key != "missing_spans"]
        columns = [frame[name] for frame in frames for name in names if name in frame.columns]
        times = [int(time) for column in columns for time in (column.min(), column.max()) if isinstance(time, int)]
        return min(times, default=0), max(times, default=0)

    @cached_property
    def coverage(self) -> Coverage:
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
        return self._publications_on(topic)["time_ns"].to_numpy()

    def publishers_times_ns(self, topic: str) -> list[TimesNs]:
        """Times of publications on a topic, one array per publisher that published on it."""
        published = self._publications_on(topic)
        return [each["time_ns"].to_numpy() for each in published.partition_by("publisher", maintain_order=True)]

    def _publications_on(self, topic: str) -> pl.DataFrame:
        publishers = self.publishers.filter(pl.col("topic") == topic)["id"]
        return self.publications.filter(pl.col("publisher").is_in(publishers.implode()))

    def topics(self) -> list[str]:
        """Names of the topics that have a publisher or a subscription, sorted."""
        return sorted({*self.publishers["topic"].drop_nulls(), *self.subscriptions["topic"].drop_nulls()})


SCHEMA_VERSION: Final = 4

Schema = Mapping[str, type[pl.DataType] | pl.DataType]


def _columns(names: str, **others: type[pl.DataType]) -> Schema:
    """Schema of columns that hold times (``…_ns``), handles or ids, by their names, and then of others."""
    kinds = {"ns": pl.Int64, "handle": pl.UInt64}
    return {name: kinds.get(name.rpartition("_")[2], pl.Int32) for name in names.split()} | others


def _entity(names: str = "", **others: type[pl.DataType]) -> Schema:
    return {**_columns(f"id process handle born_ns {names}", **others), "known": pl.Boolean}


_TOPIC_END: Final = _entity("node", topic=pl.String, depth=pl.UInt64, rmw_handle=pl.UInt64, gid=pl.String)

ENTITIES: Final[Mapping[str, Schema]] = {
    "hosts": _columns("id", name=pl.String),
    "processes": _columns("id host", pid=pl.Int64, name=pl.String),
    "threads": _columns("id process", tid=pl.Int64, name=pl.String, executor=pl.Int32),
    "nodes": _entity(name=pl.String),
    "publishers": _TOPIC_END,
    "subscriptions": _TOPIC_END,
    "services": _entity("node", name=pl.String),
    "clients": _entity("node", name=pl.String),
    "timers": _entity("node period_ns"),
    "callbacks": _entity(symbol=pl.String, subscription=pl.Int32, timer=pl.Int32, service=pl.Int32, node=pl.Int32),
    "state_machines": _entity("node"),
    "actions": _columns("id node", role=pl.String, name=pl.String),
    "executors": _columns("id process", threads=pl.UInt32),
    "link_annotations": {
        **_columns("id", rule=pl.String),
        **_columns("process time_ns", subscriptions=pl.List, publishers=pl.List),
    },
}
"""Entities.

`known` is false where no init event names the owner of a handle; `handle` is then the address that its events carry:
the middleware's for publishers and subscriptions (within a process, rcl's or that of the buffer).
"""

_SLOT: Final = {"buffer": pl.UInt64, "slot": pl.UInt64}
_REQUEST: Final = _columns("client service", client_gid=pl.String, sequence=pl.Int64)
_TRIAL: Final = _columns("begin_ns end_ns", error_code=pl.Int64, planned_ns=pl.Int64, points=pl.Int64)

INSTANCES: Final[Mapping[str, Schema]] = {
    "publications": _columns("id time_ns thread publisher source_ns rclcpp_ns rcl_ns intra_ns", intra=pl.Boolean),
    "takes": _columns("id time_ns thread subscription source_ns rcl_ns rclcpp_ns", intra=pl.Boolean, **_SLOT),
    "enqueues": _columns("id time_ns thread subscription", **_SLOT, overwritten=pl.Boolean),
    "callback_runs": _columns("id start_ns end_ns thread callback", intra=pl.Boolean, parent=pl.Int32),
    "waits": _columns("id begin_ns end_ns thread timeout_ns"),
    "executions": _columns("id begin_ns end_ns thread subscription timer"),
    "requests": {**_columns("id time_ns thread", step=pl.String), **_REQUEST},
    "transitions": _columns("id time_ns thread state_machine", from_state=pl.String, to_state=pl.String),
    "trial_spans": {
        "goal_id": pl.String,
        "scenario": pl.String,
        "index": pl.Int64,
        **_TRIAL,
        **_columns("cpu_work_ns thread"),
    },
    "phases": {"goal_id": pl.String, "phase": pl.String, **_columns("time_ns thread")},
    "plan_requests": {"goal_id": pl.String, **_columns("begin_ns end_ns cpu_work_ns thread")},
    "planning_stages": _columns("time_ns thread", name=pl.String),
    "header_stamps": _columns("time_ns thread stamp_ns"),
    "control_cycles": {**_columns("time_ns thread", cycle=pl.UInt64), **_columns("sim_time_ns period_ns")},
    "sim_steps": _columns("time_ns thread", step=pl.UInt64, sim_time_ns=pl.Int64),
    "missing_spans": _columns("process begin_ns end_ns"),
}
"""Instances.

`publications.time_ns` is `rmw_publish`, in a process that writes none `rcl_publish` or `rclcpp_publish`; `intra_ns`
is `rclcpp_intra_publish`, if the same call also gave the message to subscriptions in its own process; `intra` is true
if it went to no other process (`time_ns` is then `intra_ns`). `takes.time_ns` is `rmw_take`, or the ring buffer's
dequeue; in a process that does not write that event, the begin of the callback that got the message. `source_ns` is
null where the middleware's stamp is not recorded. `requests.step` is ``send_request``, ``take_request``,
``send_response`` or ``take_response``. `plan_requests` are goals that were planned and not executed, from the begin
of planning to the result. `planning_stages.time_ns` is the end of a stage.
`header_stamps` are those of messages whose callback runs then, or next on the thread.
`missing_spans`: events of the process may be missing from the trace from `begin_ns` (null: from its begin) to `end_ns`
(null: to its end), because they were overwritten, discarded or cut off.
"""


MANIFEST: Final = "model.json"


def write_model(model: ExecutionModel, directory: Path, *, target: Path | None = None) -> None:
    """Writes ``TABLE.parquet`` for each table; the manifest, which makes them a model, comes last.

    Raises the errors of `writing`, which name `target`, the final folder, if the given one is temporary.
    """
    with writing(target or directory, needs=sum(round(frame.estimated_size()) for frame in model.frames().values())):
        directory.mkdir(parents=True, exist_ok=True)
        (directory / MANIFEST).unlink(missing_ok=True)
        digests = {}
        for name, frame in model.frames().items():
            write_table(frame, directory / f"{name}.parquet")
            digests[name] = digest_of(directory / f"{name}.parquet")
        manifest = {
            "schema_version": SCHEMA_VERSION,
            "tables": {name: len(frame) for name, frame in model.frames().items()},
            "unknown": dict(model.unknown),
            "unpaired": dict(model.unpaired),
            "missing_events": [asdict(each) for each in model.missing_events],
            "stats": asdict(model.stats),
            "sha256": digests,
        }
        (directory / MANIFEST).write_text(json.dumps(manifest, indent=1, default=os.fspath) + "\n", "utf-8")


def read_model(directory: Path) -> ExecutionModel:
    """Reads a model of `write_model`; raises `RecordUnreadable` if it is missing, damaged or of another version."""
    path = directory / MANIFEST
    try:
        manifest = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise _unreadable(path, "is missing: no complete model lies there") from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, str(error)) from None
    version = manifest.get("schema_version") if isinstance(manifest, dict) else None
    if version != SCHEMA_VERSION:
        raise _unreadable(path, f"has schema version {version!r}, this version reads {SCHEMA_VERSION}")
    try:
        reader = PlainReader({Path: lambda value, what: Path(value)})
        stats: ReadStats = reader.read(ReadStats, manifest["stats"], "stats")
        unknown, unpaired = dict(manifest["unknown"]), dict(manifest["unpaired"])
        missing: tuple[MissingEvent, ...] = reader.read(
            tuple[MissingEvent, ...], manifest["missing_events"], "missing_events"
        )
        digests = dict(manifest["sha256"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _unreadable(path, f"is damaged: {type(error).__name__} {error}") from None
    frames = {}
    for name in (field.name for field in fields(Tables)):
        table = directory / f"{name}.parquet"
        try:
            if digest_of(table) != digests.get(name):
                raise _unreadable(table, "is damaged: its content is not what was written")
            frames[name] = pl.read_parquet(table)
        except FAULTS as error:
            raise _unreadable(table, reason_of(error)) from None
    return ExecutionModel(**frames, stats=stats, unknown=unknown, unpaired=unpaired, missing_events=missing)


def _unreadable(path: Path, reason: str) -> RecordUnreadable:
    return RecordUnreadable(f"{path}: {reason}", remedy="write the tables again: ldos analyze TRACE --output DIRECTORY")
