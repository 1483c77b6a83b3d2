"""Rounds of ddsperf, Cyclone DDS's own benchmark, for comparison with ours."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path
from typing import Final

from pytest_ldos.host.processes import Child, ProcessGroup
from pytest_ldos.instruments.latency.case import Case
from pytest_ldos.instruments.latency.command import prefix_of
from pytest_ldos.instruments.latency.cyclone import DDSPERF, environment_of
from pytest_ldos.instruments.latency.ddsperf_output import DdsperfOutput, DdsperfUnreadable, Second, parse_ddsperf
from pytest_ldos.instruments.latency.exchange import Exchange
from pytest_ldos.instruments.latency.pair import RoundFailed
from pytest_ldos.instruments.latency.site import Site
from pytest_ldos.instruments.latency.spec import LatencySpec, Transport
from pytest_ldos.instruments.latency.timings import combine
from pytest_ldos.scenario.loads.dds_flood import Reliability

FIXED_BYTES: Final = 12
"""Number, key and length in a message, which ddsperf's sizes include."""

_BEFORE_S: Final = 2
"""It finds its peer in the first second; the next is its warm-up."""

_SLACK_S: Final = 10.0


def measure_ddsperf(case: Case, site: Site, *, domain: int, block: int, folder: Path) -> Exchange:
    """Measures one round: as many of its seconds as ours measures, after a warm-up second."""
    spec = site.spec
    group = ProcessGroup(log_directory=folder, environment=environment_of(case.setup))
    seconds = math.ceil(spec.seconds) + _BEFORE_S
    try:
        if case.transport is not Transport.ONE_PROCESS:
            group.start("ddsperf pong", _pong(case, spec, domain, seconds))
        ping = group.start("ddsperf ping", _ping(case, spec, domain, seconds))
        _await_end(ping, seconds + _SLACK_S)
        for each in group.children:
            _refuse_failed(each)
        return _to_exchange(case, block, _read(ping))
    except RoundFailed as failed:
        return Exchange(case=case, block=block, failure=str(failed))
    finally:
        group.stop()


def _words(case: Case, domain: int, seconds: int) -> list[str]:
    best_effort = ["-u"] if case.reliability is Reliability.BEST_EFFORT else []
    return [DDSPERF, "-i", str(domain), "-D", str(seconds), *best_effort]


def _pong(case: Case, spec: LatencySpec, domain: int, seconds: int) -> list[str]:
    """Runs a second longer than ping, so that it never leaves first."""
    return [*prefix_of(spec, (spec.pong_cpu,)), *_words(case, domain, seconds + 1), "pong", spec.trigger]


def _ping(case: Case, spec: LatencySpec, domain: int, seconds: int) -> list[str]:
    rate = [f"{spec.rate_hz:g}Hz"] if spec.rate_hz else []
    asked = ["ping", *rate, "size", str(case.size + FIXED_BYTES)]
    if case.transport is Transport.ONE_PROCESS:
        words = [*_words(case, domain, seconds), "-L", *asked, "waitset", "pong", "waitset"]
        return [*prefix_of(spec, (spec.ping_cpu, spec.pong_cpu)), *words]
    return [*prefix_of(spec, (spec.ping_cpu,)), *_words(case, domain, seconds), *asked, spec.trigger]


def _await_end(ping: Child, timeout_s: float) -> None:
    try:
        ping.process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        raise RoundFailed("ddsperf did not end in time") from None


def _refuse_failed(child: Child) -> None:
    """Rejects results of one side after the other has gone; pong may run on for a while."""
    if child.exit_code:
        raise RoundFailed(": ".join([child.describe_end(), *child.last_lines().splitlines()[-1:]]))


def _read(ping: Child) -> DdsperfOutput:
    try:
        found = parse_ddsperf(ping.log.read_text("utf-8", errors="replace"))
    except DdsperfUnreadable as error:
        raise RoundFailed(str(error)) from None
    if not found.seconds:
        met = "no message was answered" if found.has_met else "its ping and pong did not find each other"
        raise RoundFailed(met)
    return found


def _to_exchange(case: Case, block: int, found: DdsperfOutput) -> Exchange:
    """Converts the halves to whole round trips."""
    counted = found.seconds[1:] or found.seconds
    begin_s = found.seconds[0].at_s if len(found.seconds) > 1 else counted[0].at_s - 1
    total = sum(each.half.count for each in counted)
    return Exchange(
        case=case,
        block=block,
        round_trip=combine([each.half for each in counted]).times(2),
        sent=total + found.lost,
        lost=found.lost,
        per_second=total / _span(begin_s, counted),
    )


def _span(begin_s: float, counted: tuple[Second, ...]) -> float:
    return max(counted[-1].at_s - begin_s, 1e-3)
