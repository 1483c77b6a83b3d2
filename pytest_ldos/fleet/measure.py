"""Reads one trace and summarises it; this function runs in the workers."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping

from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.series import Invalid, Missing
from pytest_ldos.fleet.find import Found
from pytest_ldos.fleet.request import SKIP_OPTION, Request
from pytest_ldos.fleet.summary import GoalValue, Outcome, Status, TraceSummary
from pytest_ldos.measure.metrics.catalogue import Catalogue, catalogue_of
from pytest_ldos.measure.metrics.extract import TrialMetrics, extract_metrics
from pytest_ldos.measure.metrics.load_own import load_own
from pytest_ldos.measure.metrics.model import Measurement
from pytest_ldos.measure.metrics.served import require_action
from pytest_ldos.robot.stack.goals import ErrorCode
from pytest_ldos.trace.ctf.read import SKIPPING, read_trace
from pytest_ldos.trace.ctf.remote import address_of
from pytest_ldos.trace.ctf.stats import describe_damage
from pytest_ldos.trace.execution.build import NEEDED_EVENTS, build_execution, require_events
from pytest_ldos.trace.execution.model import ExecutionModel, TrialSpan
from pytest_ldos.trace.flow.build import build_flow


def summarize(found: Found, request: Request) -> TraceSummary:
    """The summary of a trace, or the reason why it could not be read."""
    if found.problem:
        return TraceSummary(trace=found.name, problem=found.problem)
    try:
        return _measure(found, request)
    except LdosError as error:
        return TraceSummary(trace=found.name, problem=error.summary.replace(SKIPPING, SKIP_OPTION))
    except Exception as error:  # noqa: BLE001 - one faulty trace must not stop the others; its row says why
        return TraceSummary(trace=found.name, problem=f"{type(error).__name__}: {error}")


def _measure(found: Found, request: Request) -> TraceSummary:
    if address_of(found.path) is None and not found.path.exists():
        problem = f"{socket.gethostname()} does not see {found.path}: workers read traces from storage that all share"
        return TraceSummary(trace=found.name, problem=problem)
    own = () if request.own is None else load_own(request.own)
    decoded = read_trace(found.path, events=NEEDED_EVENTS, on_corrupt=request.on_corrupt, threads=request.threads)
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
    )
    return _sum_up(found.name, model, measured, catalogue_of(own, request.declared))


def _sum_up(
    name: str, model: ExecutionModel, measured: Mapping[str, TrialMetrics], catalogue: Catalogue
) -> TraceSummary:
    outcomes = [_outcome(each.trial) for each in measured.values()]
    return TraceSummary(
        trace=name,
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
        yield GoalValue(
            goal=name,
            goal_id=goal_id,
            began_ns=None if trial is None else trial.begin_ns,
            outcome=_outcome(trial),
            metric=metric.name,
            unit=metric.unit,
            status=_status(measurement),
            value=measurement.number,
            reason=measurement.value.reason if isinstance(measurement.value, Missing | Invalid) else "",
            source="" if measurement.source is None else measurement.source.name,
        )


def _status(measurement: Measurement) -> Status:
    match measurement.value:
        case Missing():
            return Status.MISSING
        case Invalid():
            return Status.INVALID
    return Status.MEASURED
