"""DDS latency: interleaved rounds of all cases and programs."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.host.temporary import temporary_folder
from pytest_ldos.instruments.instrument import Instrument, Progress
from pytest_ldos.instruments.latency import cyclone_pair, rclcpp_pair
from pytest_ldos.instruments.latency.case import Case, Program, cases_of, setups_of, why_no_priority
from pytest_ldos.instruments.latency.cyclone import running_router
from pytest_ldos.instruments.latency.ddsperf import measure_ddsperf
from pytest_ldos.instruments.latency.exchange import Exchange, to_exchange
from pytest_ldos.instruments.latency.findings import (
    QUANTITIES,
    by_case,
    comparable_setups,
    compare_all,
    remarks_of,
    rounds_of,
)
from pytest_ldos.instruments.latency.pair import RoundFailed, run_pair
from pytest_ldos.instruments.latency.programs import Site, available, find_all
from pytest_ldos.instruments.latency.spec import LatencySpec, Transport
from pytest_ldos.instruments.latency.tables import figures_of, tables_of
from pytest_ldos.instruments.study import Study
from pytest_ldos.robot.dds.domain import claim_domain


def measure_all(cases: Sequence[Case], site: Site, progress: Progress) -> Iterator[Exchange]:
    """Measures every case once per block, interleaved, so that drift affects all cases alike.

    The order is reversed in every second block.
    """
    progress.expect(len(cases) * site.spec.rounds)
    for block in range(site.spec.rounds):
        for case in cases if block % 2 == 0 else reversed(cases):
            progress.doing(f"round {block + 1} of {site.spec.rounds}: {case.program}, {case.words}")
            found = measure_round(case, site, block=block)
            if found.failure:
                progress.note(f"{case.program}, {case.words}: {found.failure}")
            progress.step()
            yield found


def measure_round(case: Case, site: Site, *, block: int) -> Exchange:
    """Measures a round with new processes on a separate domain."""
    with claim_domain() as domain, tempfile.TemporaryDirectory(dir=site.folder) as folder:
        if case.program is Program.DDSPERF:
            return measure_ddsperf(case, site, domain=domain, block=block, folder=Path(folder))
        pair = rclcpp_pair if case.program.rmw else cyclone_pair
        commands = pair.commands_of(case, site, domain=domain, folder=Path(folder))
        try:
            counts = run_pair(commands, Path(folder))
            return to_exchange(case, block, counts, commands.samples)
        except RoundFailed as failed:
            return Exchange(case=case, block=block, failure=str(failed))


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
    """Starts the router for shared memory; if it fails, drops the cases that need it."""
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
    """Returns the given settings without empty ones (defaults)."""
    given = dataclasses.asdict(spec)
    return {name: str(value) if isinstance(value, str) else value for name, value in given.items() if value != ""}


INSTRUMENT: Final = Instrument(name=NAME, spec=LatencySpec, quantities=QUANTITIES, available=available, measure=measure)
