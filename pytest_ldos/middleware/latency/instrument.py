"""DDS latency: round trips and one-way times, with Cyclone DDS's own benchmark and rclcpp beside ours."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pytest_ldos.errors import Unavailable
from pytest_ldos.metrics.model import Metric
from pytest_ldos.middleware.instrument import Instrument, Progress
from pytest_ldos.middleware.latency.agreement import compare_all
from pytest_ldos.middleware.latency.case import Program, Setup, cases_of, setups_of
from pytest_ldos.middleware.latency.command import why_no_priority
from pytest_ldos.middleware.latency.exchange import Exchange
from pytest_ldos.middleware.latency.figures import figures_of
from pytest_ldos.middleware.latency.findings import by_case
from pytest_ldos.middleware.latency.programs import available, find_all
from pytest_ldos.middleware.latency.rounds import measure_all
from pytest_ldos.middleware.latency.router import running_router
from pytest_ldos.middleware.latency.site import Site
from pytest_ldos.middleware.latency.spec import NO_CPU, LatencySpec, Transport
from pytest_ldos.middleware.latency.tables import tables_of
from pytest_ldos.middleware.study import Round, Study
from pytest_ldos.series import Better, Missing, Value

NAME: Final = "latency"
P50: Final = Metric(name="round_trip_p50", title="Round trip, median", unit="µs", better=Better.LOWER)
P90: Final = Metric(name="round_trip_p90", title="Round trip, 90th percentile", unit="µs", better=Better.LOWER)
P99: Final = Metric(name="round_trip_p99", title="Round trip, 99th percentile", unit="µs", better=Better.LOWER)
P999: Final = Metric(name="round_trip_p999", title="Round trip, 99.9th percentile", unit="µs", better=Better.LOWER)
ONE_WAY: Final = Metric(name="one_way_p50", title="One way there, median", unit="µs", better=Better.LOWER)
RATE: Final = Metric(name="round_trips", title="Round trips a second", unit="Hz", better=Better.HIGHER)
QUANTITIES: Final = (P50, P90, P99, P999, ONE_WAY, RATE)


def measure(spec: LatencySpec, progress: Progress) -> Study:
    """Measures all cases in turns.

    Raises:
        Unavailable: nothing of it can be measured here.
    """
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    programs = find_all(spec)
    notes = list(programs.notes)
    with ExitStack() as resources:
        folder = Path(resources.enter_context(tempfile.TemporaryDirectory(prefix="ldos-latency-")))
        site = Site(spec=spec, programs=programs, folder=folder)
        refused = why_no_priority(spec.priority)
        if refused:
            notes.append(f"SCHED_FIFO {spec.priority} is not permitted, processes ran as others do: {refused}")
            site = site.without_priority()
        setups = _with_router(setups_of(spec), site, notes, resources)
        cases = [case for setup in setups for case in cases_of([setup], programs.for_setup(setup))]
        if not cases:
            raise Unavailable("nothing of this can be measured here: " + "; ".join(notes))
        findings = by_case(cases, measure_all(cases, site, progress))
    every = [found for each in findings for found in each.exchanges]
    return Study(
        instrument=NAME,
        name=NAME,
        layer="ros2" if any(case.program.rmw for case in cases) else "embedded",
        middleware="rmw_cyclonedds_cpp",
        started_at=started_at,
        settings=_settings(site.spec),
        quantities=QUANTITIES,
        rounds=tuple(_round(each, site.spec) for each in _gated(every)),
        tables=tables_of(findings, compare_all(every, _comparable(setups, spec, notes))),
        figures=figures_of(findings),
        notes=(*_remarks(every), *notes),
        versions=programs.versions,
    )


def _with_router(setups: list[Setup], site: Site, notes: list[str], resources: ExitStack) -> list[Setup]:
    """All, with what shared memory needs running; without those that need it where it does not run."""
    needs = [each for each in setups if each.transport is Transport.SHARED_MEMORY]
    if not any(each.is_cyclone for setup in needs for each in site.programs.for_setup(setup)):
        return setups
    try:
        resources.enter_context(running_router(site.folder))
    except Unavailable as error:
        notes.append(f"shared memory was not measured: {error.summary}")
        return [each for each in setups if each not in needs]
    return setups


def _comparable(setups: list[Setup], spec: LatencySpec, notes: list[str]) -> list[Setup]:
    """Without those in which ddsperf cannot be told to do as ours does."""
    if NO_CPU in {spec.ping_cpu, spec.pong_cpu} or not spec.ddsperf:
        return setups
    others = [each for each in setups if each.transport is not Transport.ONE_PROCESS]
    if len(others) < len(setups):
        notes.append("in one process ours has a CPU for each side, ddsperf both for both: they are not compared")
    return others


def _gated(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """Rounds of ours; ddsperf's are beside them for comparison."""
    ours = [each for each in exchanges if each.case.program is not Program.DDSPERF]
    return sorted(ours, key=lambda each: each.block)


def _round(found: Exchange, spec: LatencySpec) -> Round:
    return Round(
        case=found.case.name(spec),
        block=found.block,
        values=_values(found),
        details={"sent": float(found.sent), "lost": float(found.lost), "late": float(found.late)},
        failure=found.failure,
    )


def _values(found: Exchange) -> dict[str, Value]:
    times = found.round_trip
    if times is None:
        return {}
    return {
        P50.name: times.p50,
        P90.name: times.p90,
        P99.name: times.p99,
        P999.name: Missing("it is not told") if times.p999 is None else times.p999,
        ONE_WAY.name: Missing("it is not told") if found.there is None else found.there.p50,
        RATE.name: found.per_second,
    }


def _settings(spec: LatencySpec) -> dict[str, Any]:
    """As they were given; what is empty is as it is by itself."""
    given = dataclasses.asdict(spec)
    return {name: str(value) if isinstance(value, str) else value for name, value in given.items() if value != ""}


def _remarks(exchanges: Sequence[Exchange]) -> list[str]:
    """Of messages that were lost, and of ddsperf, whose failures are no rounds of ours."""
    lost, sent = sum(each.lost for each in exchanges), sum(each.sent for each in exchanges)
    losses = [f"{lost} of {sent} messages had no answer in time"] if lost else []
    theirs = [each for each in exchanges if each.case.program is Program.DDSPERF and each.failure]
    return [*losses, *dict.fromkeys(f"ddsperf, {each.case.words}: {each.failure}" for each in theirs)]


INSTRUMENT: Final = Instrument(name=NAME, spec=LatencySpec, quantities=QUANTITIES, available=available, measure=measure)
