"""DDS latency: interleaved rounds of all cases and programs, among them Cyclone DDS's own benchmark ddsperf.

``[17] 2.001  host:18 size 1036 mean 9.386us min 7.441us 50% 9.208us 90% 10.21us 99% 28.137us max 3622.01us cnt 52896``:
process, seconds since its start, peer, size, and percentiles of the last second's first 20 000 round trips, halved;
``cnt`` counts all. The first line may also cover the seconds in which peers were found.
"""

from __future__ import annotations

import dataclasses
import math
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.host.processes import ProcessGroup, quoted
from pytest_ldos.host.temporary import temporary_folder
from pytest_ldos.instruments.latency.findings import (
    QUANTITIES,
    Exchange,
    Percentiles,
    by_case,
    combine,
    comparable_setups,
    compare_all,
    remarks_of,
    rounds_of,
    to_exchange,
)
from pytest_ldos.instruments.latency.pair import RoundFailed, cyclone_commands, rclcpp_commands, run_pair
from pytest_ldos.instruments.latency.programs import DDSPERF, Site, available, environment_of, find_all, running_router
from pytest_ldos.instruments.latency.spec import (
    LatencyCase,
    LatencySpec,
    Program,
    Transport,
    cases_of,
    prefix_of,
    setups_of,
    why_no_priority,
)
from pytest_ldos.instruments.latency.tables import figures_of, tables_of
from pytest_ldos.instruments.study import Instrument, Progress, Study, alternate
from pytest_ldos.robot.dds.domain import claim_domain
from pytest_ldos.scenario.loads import Reliability

_UNITS: Final = {"ns": 1e-3, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6}
_TIME: Final = r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s)"
_NAMES: Final = ("mean", "min", "50%", "90%", "99%", "max")
_LINE: Final = re.compile(
    r"^\[\d+\] (\d+(?:\.\d+)?)\s+\S.* size \d+ " + " ".join(rf"{name} {_TIME}" for name in _NAMES) + r" cnt (\d+)$"
)
_LIKE_ONE: Final = re.compile(r"\b(mean|cnt)\b")
_TIMED_OUT: Final = re.compile(r"ping timed out \(total (\d+) times\)")
_MET: Final = re.compile(r"participant \S+: new$", re.MULTILINE)


class DdsperfUnreadable(Exception): ...


@dataclass(frozen=True)
class Second:
    """Percentiles of round trips, in a line printed `at_s` after the start."""

    at_s: float
    round_trip: Percentiles


@dataclass(frozen=True)
class DdsperfOutput:
    """The whole output; `lost` messages had no answer, `has_met` is True if it saw another participant."""

    seconds: tuple[Second, ...]
    lost: int
    has_met: bool


def parse_ddsperf(text: str) -> DdsperfOutput:
    """Parses the output; raises `DdsperfUnreadable` if a line of percentiles is damaged or invalid."""
    timeouts = [int(number) for number in _TIMED_OUT.findall(text)]
    seconds = []
    for line in text.splitlines():
        match = _LINE.match(line.rstrip())
        if match is not None:
            seconds.append(_second(match))
        elif _LIKE_ONE.search(line):
            raise DdsperfUnreadable(f"ddsperf printed {quoted(line)}, which is not understood")
    return DdsperfOutput(tuple(seconds), max(timeouts, default=0), bool(_MET.search(text)))


def _second(match: re.Match[str]) -> Second:
    at_s, *times, count = match.groups()
    values = [2 * float(number) * _UNITS[unit] for number, unit in zip(times[::2], times[1::2], strict=True)]
    mean, low, p50, p90, p99, high = values
    if not (low <= p50 <= p90 <= p99 <= high and low <= mean <= high and int(count) > 0):
        raise DdsperfUnreadable(f"ddsperf printed {quoted(match.string)}, which makes no sense")
    found = Percentiles(count=int(count), low=low, mean=mean, p50=p50, p90=p90, p99=p99, p999=None, high=high)
    return Second(float(at_s), found)


FIXED_BYTES: Final = 12  # number, key and length in a message, which ddsperf's sizes include
_BEFORE_S: Final = 2  # seconds before the measurement: discovery, then warm-up
_SLACK_S: Final = 10.0


def measure_ddsperf(case: LatencyCase, site: Site, *, domain: int, block: int, folder: Path) -> Exchange:
    """Measures one round of the same number of seconds, after a warm-up second."""
    group = ProcessGroup(log_directory=folder, environment=environment_of(case))
    try:
        found = _run_ddsperf(case, site.spec, group, domain)
    except (RoundFailed, DdsperfUnreadable) as failed:
        return Exchange(case=case, block=block, failure=str(failed))
    finally:
        group.stop()
    counted = found.seconds[1:] or found.seconds
    begin_s = found.seconds[0].at_s if len(found.seconds) > 1 else counted[0].at_s - 1
    total = sum(each.round_trip.count for each in counted)
    return Exchange(
        case=case,
        block=block,
        round_trip=combine([each.round_trip for each in counted]),
        sent=total + found.lost,
        lost=found.lost,
        per_second=total / max(counted[-1].at_s - begin_s, 1e-3),
    )


def _run_ddsperf(case: LatencyCase, spec: LatencySpec, group: ProcessGroup, domain: int) -> DdsperfOutput:
    """Runs ping and pong, in one process or two, of which pong runs longer; raises if the round has no numbers."""
    seconds = math.ceil(spec.seconds) + _BEFORE_S
    rate = [f"{spec.rate_hz:g}Hz"] if spec.rate_hz else []
    best_effort = ["-u"] if case.reliability is Reliability.BEST_EFFORT else []
    ping, pong = ([DDSPERF, "-i", str(domain), "-D", str(each), *best_effort] for each in (seconds, seconds + 1))
    asked = ["ping", *rate, "size", str(case.size + FIXED_BYTES)]
    cpus = [spec.ping_cpu]
    if case.transport is Transport.ONE_PROCESS:
        cpus.append(spec.pong_cpu)
        ping += ["-L", *asked, "waitset", "pong", "waitset"]
    else:
        ping += [*asked, spec.trigger]
        group.start("ddsperf pong", [*prefix_of(spec, (spec.pong_cpu,)), *pong, "pong", spec.trigger])
    child = group.start("ddsperf ping", [*prefix_of(spec, tuple(cpus)), *ping])
    try:
        child.process.wait(seconds + _SLACK_S)
    except subprocess.TimeoutExpired:
        raise RoundFailed("ddsperf did not end in time") from None
    for each in group.children:
        if each.exit_code:
            raise RoundFailed(": ".join([each.describe_end(), *each.last_lines().splitlines()[-1:]]))
    found = parse_ddsperf(child.log.read_text("utf-8", errors="replace"))
    if not found.seconds:
        raise RoundFailed("no message was answered" if found.has_met else "its ping and pong did not find each other")
    return found


def measure_all(cases: Sequence[LatencyCase], site: Site, progress: Progress) -> Iterator[Exchange]:
    progress.expect(len(cases) * site.spec.rounds)
    for block in range(site.spec.rounds):
        for case in alternate(cases, block):
            progress.doing(f"round {block + 1} of {site.spec.rounds}: {case.program}, {case.words}")
            found = measure_round(case, site, block=block)
            if found.failure:
                progress.note(f"{case.program}, {case.words}: {found.failure}")
            progress.step()
            yield found


def measure_round(case: LatencyCase, site: Site, *, block: int) -> Exchange:
    with claim_domain() as domain, tempfile.TemporaryDirectory(dir=site.folder) as folder:
        if case.program is Program.DDSPERF:
            return measure_ddsperf(case, site, domain=domain, block=block, folder=Path(folder))
        commands_of = rclcpp_commands if case.program.rmw else cyclone_commands
        commands = commands_of(case, site, domain=domain, folder=Path(folder))
        try:
            return to_exchange(case, block, run_pair(commands, Path(folder)), commands.samples)
        except RoundFailed as failed:
            return Exchange(case=case, block=block, failure=str(failed))


NAME: Final = "latency"


def measure(spec: LatencySpec, progress: Progress) -> Study:
    """Measures all cases, interleaved; raises `Unavailable` if none can be measured here."""
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    programs = find_all(spec)
    notes = list(programs.notes)
    with ExitStack() as resources:
        folder = resources.enter_context(temporary_folder("ldos-latency-"))
        site = Site(spec=spec, programs=programs, folder=folder)
        refused = why_no_priority(spec.priority)
        if refused:
            notes.append(f"SCHED_FIFO {spec.priority} is not permitted, processes ran as others do: {refused}")
            site = dataclasses.replace(site, spec=dataclasses.replace(spec, priority=0))
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
        settings={
            name: str(value) if isinstance(value, str) else value
            for name, value in dataclasses.asdict(site.spec).items()
            if value != ""
        },
        quantities=QUANTITIES,
        rounds=rounds_of(every, site.spec),
        tables=tables_of(findings, compare_all(every, comparable_setups(setups, spec, notes))),
        figures=figures_of(findings),
        notes=(*remarks_of(every), *notes),
        versions=programs.versions,
    )


def _with_router(cases: list[LatencyCase], site: Site, notes: list[str], resources: ExitStack) -> list[LatencyCase]:
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


INSTRUMENT: Final = Instrument(name=NAME, spec=LatencySpec, quantities=QUANTITIES, available=available, measure=measure)
