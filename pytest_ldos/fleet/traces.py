"""Finds traces below folders, summarises each in the workers, and pools many.

Reference: LTTng's layout of a session, ``[archives/CHUNK/](ust/uid/UID/BITS | ust/pid/PROCESS | kernel)/metadata``,
which is one trace; ``ros2 trace --dual-session`` records two, ``snapshot`` and ``runtime``, which are also one.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal

import numpy as np

from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.ros2 import PathSpec
from pytest_ldos.base.series import Invalid, Missing
from pytest_ldos.measure.metrics.catalogue import Catalogue, OwnSource, catalogue_of, load_own
from pytest_ldos.measure.metrics.extract import TrialMetrics, extract_metrics
from pytest_ldos.measure.metrics.model import Interfaces, require_action
from pytest_ldos.measure.metrics.own_events import own_events
from pytest_ldos.robot.stack.goals import ErrorCode
from pytest_ldos.scenario.metrics import MetricSpec
from pytest_ldos.trace.ctf.files import METADATA, address_of, is_archive, no_trace
from pytest_ldos.trace.ctf.read import SKIPPING, read_trace
from pytest_ldos.trace.ctf.stats import describe_damage
from pytest_ldos.trace.execution.build import NEEDED_EVENTS, build_execution, require_events
from pytest_ldos.trace.execution.model import TrialSpan
from pytest_ldos.trace.execution.observed import OwnEvents
from pytest_ldos.trace.flow.build import build_flow

_HALVES: Final = ("snapshot", "runtime")  # sessions of a dual session: the initialisation, and the recording


@dataclass(frozen=True)
class Found:
    """A trace, or a place without one."""

    name: str  # the path or address as given by the user
    path: Path  # the absolute path; for an address see `address_of`
    problem: str = ""  # reason why there is no trace; empty if there is one

    @classmethod
    def at(cls, place: Path, problem: str = "") -> Found:
        address = address_of(place)
        return cls(str(place), place.absolute(), problem) if address is None else cls(address, place, problem)


def find_traces(places: Iterable[Path], *, together: bool = False) -> tuple[Found, ...]:
    """Returns each trace once, ordered by name; treats each place as one trace if they belong `together`.

    Places are folders of one session or of many, archives of one, and addresses of one.
    """
    found: dict[Path, Found] = {}
    for place in places:
        for each in [Found.at(place)] if together else _below(place):
            found.setdefault(each.path, each)
    return tuple(sorted(found.values(), key=lambda each: each.name))


def _below(place: Path) -> Iterator[Found]:
    if address_of(place) is not None or (is_archive(place) and place.exists()):
        yield Found.at(place)
        return
    if not place.is_dir():
        yield Found.at(place, no_trace(place).reason)
        return
    closed: list[OSError] = []
    archives: list[Path] = []
    sessions = dict.fromkeys(_session_of(folder, place) for folder in _folders_of_metadata(place, closed, archives))
    sessions.update(dict.fromkeys(archives))
    yield from (Found.at(session) for session in sessions)
    yield from (Found.at(Path(error.filename), error.strerror or "cannot be listed") for error in closed)
    if not sessions and not closed:
        yield Found.at(place, no_trace(place).reason)


def _folders_of_metadata(place: Path, closed: list[OSError], archives: list[Path]) -> Iterator[Path]:
    """Yields folders with trace metadata. Follows links, and enters each folder once."""
    entered: set[tuple[int, int]] = set()
    for name, folders, files in os.walk(place, onerror=closed.append, followlinks=True):
        status = Path(name).stat()
        identity = (status.st_dev, status.st_ino)
        if identity in entered:
            folders.clear()
            continue
        entered.add(identity)
        folders.sort()
        archives += [each for file in sorted(files) if is_archive(each := Path(name, file))]
        if METADATA in files:
            yield Path(name)


def _session_of(folder: Path, place: Path) -> Path:
    """The session folder of a CTF trace, but never above `place`; the trace itself in another layout than LTTng's."""
    absolute, top = folder.absolute(), place.absolute()
    parts = absolute.parts
    depth = 1 if parts[-1] == "kernel" else 0
    if parts[-4:-2] == ("ust", "uid"):
        depth = 4
    elif parts[-3:-1] == ("ust", "pid"):
        depth = 3
    session = (absolute, *absolute.parents)[depth]
    if session.parent.name == "archives":
        session = session.parent.parent
    half = session if session.name in _HALVES else session.parent  # LTTng creates a folder per snapshot
    if half.name in _HALVES and all((half.parent / name).is_dir() for name in _HALVES):
        session = half.parent
    within = session if session.is_relative_to(top) else top
    return place / within.relative_to(top)


SKIP_OPTION: Final = "--on-corrupt skip"


@dataclass(frozen=True, kw_only=True)
class Request:
    """Settings for measuring traces."""

    nominal_period_ns: int
    interfaces: Interfaces
    usual: Interfaces  # the project's configured names; a different action must occur in the trace
    paths: tuple[PathSpec, ...] = ()  # causal paths for user metrics that use message flow
    own: OwnSource | None = None  # the user's metrics; loaded where the trace is read
    declared: tuple[MetricSpec, ...] = ()
    on_corrupt: Literal["refuse", "skip"] = "refuse"
    threads: int | None = None  # number of decoding threads; by default one per CPU


class Outcome(StrEnum):
    REACHED = "reached"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Status(StrEnum):
    MEASURED = "measured"
    MISSING = "missing"
    INVALID = "invalid"


@dataclass(frozen=True, kw_only=True)
class GoalValue:
    """One metric of one goal."""

    goal: str  # scenario and number with markers, else the goal's id
    goal_id: str
    began_ns: int | None  # since the epoch; ``None`` if it is not in the trace
    outcome: Outcome
    metric: str
    unit: str
    status: Status
    value: float | None = None  # in the metric's unit; ``None`` if not measured, with the cause in `reason`
    reason: str = ""
    source: str = ""  # empty if there is none


@dataclass(frozen=True, kw_only=True)
class TraceSummary:
    """Summary of one trace, with its numbers of goals by outcome."""

    trace: str  # path as given by the user
    problem: str = ""  # reason why it could not be read, with all other fields empty; empty if it was read
    events: int = 0
    nodes: int = 0
    reached: int = 0
    failed: int = 0
    unknown: int = 0
    lost_events: int = 0
    lost_packets: int = 0
    damage: str = ""  # description of all missing and corrupt data; empty if there is none
    values: tuple[GoalValue, ...] = ()


def summarize(found: Found, request: Request) -> TraceSummary:
    problem = found.problem
    if not problem:
        try:
            return _measure(found, request)
        except LdosError as error:
            problem = error.summary.replace(SKIPPING, SKIP_OPTION)
        except Exception as error:  # noqa: BLE001 - one faulty trace must not stop the others; its row says why
            problem = f"{type(error).__name__}: {error}"
    return TraceSummary(trace=found.name, problem=problem)


def _measure(found: Found, request: Request) -> TraceSummary:
    if address_of(found.path) is None and not found.path.exists():
        problem = f"{socket.gethostname()} does not see {found.path}: workers read traces from storage that all share"
        return TraceSummary(trace=found.name, problem=problem)
    own = () if request.own is None else load_own(request.own)
    names = own_events(request.declared)
    decoded = read_trace(
        found.path, events=NEEDED_EVENTS | names, on_corrupt=request.on_corrupt, threads=request.threads
    )
    model = build_execution(decoded)
    require_events(model, found.path)
    require_action(model, request.interfaces, request.usual)
    measured = extract_metrics(
        model,
        nominal_period_ns=request.nominal_period_ns,
        interfaces=request.interfaces,
        own=own,
        declared=request.declared,
        flow=build_flow(model, request.paths) if own or request.declared else None,
        events=OwnEvents(decoded, names),
    )
    catalogue = catalogue_of(own, request.declared)
    outcomes = [_outcome(each.trial) for each in measured.values()]
    return TraceSummary(
        trace=found.name,
        events=model.stats.events,
        nodes=len(model.nodes),
        reached=outcomes.count(Outcome.REACHED),
        failed=outcomes.count(Outcome.FAILED),
        unknown=outcomes.count(Outcome.UNKNOWN),
        lost_events=model.stats.discarded_events,
        lost_packets=model.stats.lost_packets,
        damage=describe_damage(model.stats),
        values=tuple(value for goal_id, each in measured.items() for value in _values(goal_id, each, catalogue)),
    )


def _outcome(trial: TrialSpan | None) -> Outcome:
    if trial is None or trial.end_ns is None or trial.error_code is None:
        return Outcome.UNKNOWN
    return Outcome.REACHED if trial.error_code == ErrorCode.SUCCESS else Outcome.FAILED


def _values(goal_id: str, measured: TrialMetrics, catalogue: Catalogue) -> Iterator[GoalValue]:
    trial = measured.trial
    name = f"{trial.scenario} {trial.index + 1}" if trial is not None and trial.marked else goal_id
    for metric in catalogue.values():
        measurement = measured.measurements[metric.name]
        status, reason = Status.MEASURED, ""
        if isinstance(measurement.value, Missing | Invalid):
            status = Status.MISSING if isinstance(measurement.value, Missing) else Status.INVALID
            reason = measurement.value.reason
        yield GoalValue(
            goal=name,
            goal_id=goal_id,
            began_ns=None if trial is None else trial.begin_ns,
            outcome=_outcome(trial),
            metric=metric.name,
            unit=metric.unit,
            status=status,
            value=measurement.number,
            reason=reason,
            source="" if measurement.source is None else measurement.source.name,
        )


@dataclass(frozen=True, kw_only=True)
class Pooled:
    """One metric over all goals of complete traces, from one source; values from other sources are not comparable.

    Attributes:
        count, traces: numbers of goals with a value, and of the traces that they belong to.
        median, p95: in the metric's unit; p95 by linear interpolation.
    """

    metric: str
    source: str
    unit: str
    count: int
    traces: int
    median: float
    p95: float


def pool(summaries: Sequence[TraceSummary]) -> tuple[Pooled, ...]:
    """Pools the metrics of complete traces, ordered by metric, then by source."""
    found: dict[tuple[str, str, str], list[tuple[str, float]]] = {}
    for summary in filter(is_whole, summaries):
        for each in summary.values:
            if each.value is not None:
                found.setdefault((each.metric, each.source, each.unit), []).append((summary.trace, each.value))
    places = {name: place for place, name in enumerate(metric_names(summaries))}
    pooled = []
    for (metric, source, unit), values in sorted(found.items(), key=lambda item: (places[item[0][0]], item[0])):
        median, p95 = np.quantile([value for _, value in values], [0.5, 0.95])
        pooled.append(
            Pooled(
                metric=metric,
                source=source,
                unit=unit,
                count=len(values),
                traces=len({trace for trace, _ in values}),
                median=float(median),
                p95=float(p95),
            )
        )
    return tuple(pooled)


def is_whole(summary: TraceSummary) -> bool:
    """True if no part of the trace is missing; in an incomplete trace, pauses may be lost events."""
    return not (summary.problem or summary.damage or summary.lost_events or summary.lost_packets)


def metric_names(summaries: Sequence[TraceSummary]) -> tuple[str, ...]:
    """Names of the metrics of all traces, in the order of their first appearance."""
    return tuple(dict.fromkeys(each.metric for summary in summaries for each in summary.values))


def median_of(summary: TraceSummary, metric: str) -> tuple[float, str] | None:
    """Median over a trace's goals, and its unit; ``None`` if no goal has the metric or its sources differ."""
    values = [each for each in summary.values if each.metric == metric and each.value is not None]
    if len({each.source for each in values}) != 1:
        return None
    return float(np.median([each.value for each in values])), values[0].unit
