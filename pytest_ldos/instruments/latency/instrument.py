"""DDS latency: round trips and one-way times of our programs, Cyclone DDS's own benchmark and rclcpp."""

from __future__ import annotations

import dataclasses
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any, Final

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.host.temporary import temporary_folder
from pytest_ldos.instruments.instrument import Instrument, Progress
from pytest_ldos.instruments.latency.agreement import comparable_setups, compare_all
from pytest_ldos.instruments.latency.case import Case, cases_of, setups_of
from pytest_ldos.instruments.latency.command import why_no_priority
from pytest_ldos.instruments.latency.figures import figures_of
from pytest_ldos.instruments.latency.findings import by_case
from pytest_ldos.instruments.latency.gated import QUANTITIES, remarks_of, rounds_of
from pytest_ldos.instruments.latency.programs import available, find_all
from pytest_ldos.instruments.latency.rounds import measure_all
from pytest_ldos.instruments.latency.router import running_router
from pytest_ldos.instruments.latency.site import Site
from pytest_ldos.instruments.latency.spec import LatencySpec, Transport
from pytest_ldos.instruments.latency.tables import tables_of
from pytest_ldos.instruments.study import Study

NAME: Final = "latency"


def measure(spec: LatencySpec, progress: Progress) -> Study:
    """Measures all cases, interleaved.

    Raises:
        Unavailable: none of the cases can be measured here.
    """
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    programs = find_all(spec)
    notes = list(programs.notes)
    with ExitStack() as resources:
        folder = resources.enter_context(temporary_folder("ldos-latency-"))
        site = Site(spec=spec, programs=programs, folder=folder)
        refused = why_no_priority(spec.priority)
        if refused:
            notes.append(f"SCHED_FIFO {spec.priority} is not permitted, processes ran as others do: {refused}")
            site = site.without_priority()
        setups = setups_of(spec)
        every_case = [case for setup in setups for case in cases_of([setup], programs.for_setup(setup))]
        cases = _with_router(every_case, site, notes, resources)
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
        rounds=rounds_of(every, site.spec),
        tables=tables_of(findings, compare_all(every, comparable_setups(setups, spec, notes))),
        figures=figures_of(findings),
        notes=(*remarks_of(every), *notes),
        versions=programs.versions,
    )


def _with_router(cases: list[Case], site: Site, notes: list[str], resources: ExitStack) -> list[Case]:
    """Starts the router that shared memory needs; returns the cases, less those that need it if it fails."""
    needs = [each for each in cases if each.transport is Transport.SHARED_MEMORY and each.program.is_cyclone]
    if not needs:
        return cases
    try:
        resources.enter_context(running_router(site.folder))
    except Unavailable as error:
        notes.append(f"shared memory of Cyclone DDS was not measured: {error.summary}")
        return [each for each in cases if each not in needs]
    return cases


def _settings(spec: LatencySpec) -> dict[str, Any]:
    """Returns the settings as they were given; empty ones, which stand for defaults, are left out."""
    given = dataclasses.asdict(spec)
    return {name: str(value) if isinstance(value, str) else value for name, value in given.items() if value != ""}


INSTRUMENT: Final = Instrument(name=NAME, spec=LatencySpec, quantities=QUANTITIES, available=available, measure=measure)
