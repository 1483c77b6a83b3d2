"""The pair over a Cyclone DDS library."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

from pytest_ldos.base.text import NS_PER_MS, NS_PER_S, seconds_to_ns
from pytest_ldos.instruments.latency.case import Case, prefix_of
from pytest_ldos.instruments.latency.cyclone import environment_of
from pytest_ldos.instruments.latency.pair import PairCommands
from pytest_ldos.instruments.latency.peer_parameters import BOTH, PING, PONG, PeerParameters, as_argument
from pytest_ldos.instruments.latency.programs import Site
from pytest_ldos.instruments.latency.spec import LatencySpec, Transport, Trigger
from pytest_ldos.scenario.loads.flood import Reliability

WARM_UP_S: Final = 0.2
_SLACK_S: Final = 10.0


def longest_s(spec: LatencySpec) -> float:
    """Time limit of a round after both sides have found each other."""
    return WARM_UP_S + spec.seconds + spec.patience_ms / 1000 + _SLACK_S


def commands_of(case: Case, site: Site, *, domain: int, folder: Path) -> PairCommands:
    """Returns the commands that measure a round of a case."""
    spec, samples = site.spec, folder / "times"
    given = PeerParameters(
        role=PING,
        library=str(site.programs.libraries[case.program].path),
        domain=domain,
        reliable=case.reliability is Reliability.RELIABLE,
        listener=spec.trigger is Trigger.LISTENER,
        size=case.size,
        duration_ns=seconds_to_ns(spec.seconds),
        warm_up_ns=seconds_to_ns(WARM_UP_S),
        patience_ns=round(spec.patience_ms * NS_PER_MS),
        match_timeout_ns=seconds_to_ns(spec.match_timeout_s),
        interval_ns=round(NS_PER_S / spec.rate_hz) if spec.rate_hz else 0,
        ping_cpu=spec.ping_cpu,
        pong_cpu=spec.pong_cpu,
        samples=str(samples),
    )
    if case.transport is Transport.ONE_PROCESS:
        ping = _command(spec, replace(given, role=BOTH), (spec.ping_cpu, spec.pong_cpu))
        pong = None
    else:
        ping = _command(spec, given, (spec.ping_cpu,))
        pong = _command(spec, replace(given, role=PONG), (spec.pong_cpu,))
    return PairCommands(
        ping=ping,
        pong=pong,
        environment=environment_of(case.setup),
        samples=samples,
        must_share_memory=case.transport is Transport.SHARED_MEMORY,
        match_timeout_s=spec.match_timeout_s,
        longest_s=longest_s(spec),
    )


def _command(spec: LatencySpec, given: PeerParameters, cpus: tuple[int, ...]) -> list[str]:
    peer = [sys.executable, "-m", "pytest_ldos.instruments.latency.peer", as_argument(given)]
    return [*prefix_of(spec, cpus), *peer]
