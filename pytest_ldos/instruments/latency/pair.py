"""Ping and pong processes, which send and answer messages and report in lines of JSON (see `peer`)."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.text import NS_PER_MS, NS_PER_S, seconds_to_ns
from pytest_ldos.host.availability import ros_program
from pytest_ldos.host.kept import AnsweringChild, ChildFailed, NotAnsweredYet
from pytest_ldos.host.processes import Child, ProcessGroup, quoted
from pytest_ldos.instruments.latency.findings import Counts
from pytest_ldos.instruments.latency.peer import BOTH, PING, PONG, PeerParameters
from pytest_ldos.instruments.latency.programs import ROS_PACKAGE, Site, environment_of
from pytest_ldos.instruments.latency.spec import LatencyCase, LatencySpec, Program, Transport, Trigger, prefix_of
from pytest_ldos.robot.dds.domain import deaf_to_other_devices
from pytest_ldos.scenario.loads import Reliability

WARM_UP_S: Final = 0.2
_SLACK_S: Final = 10.0
_LOOK_S: Final = 0.1
_START_S: Final = 20.0  # time limit for an interpreter's start on a busy machine


@dataclass(frozen=True, kw_only=True)
class PairCommands:
    """Commands that start both sides, or one process with both if there is no `pong`.

    `samples` is the file of `ping`'s times. A round fails if it `must_share_memory` and does not.
    """

    ping: Sequence[str]
    pong: Sequence[str] | None
    environment: Mapping[str, str]
    samples: Path
    spec: LatencySpec
    must_share_memory: bool = False


class RoundFailed(Exception):
    """A round has no numbers; the message has the reason."""


@dataclass
class Pair:
    commands: PairCommands
    group: ProcessGroup
    pong: Child | None = None

    def start_pong(self) -> None:
        """Starts pong and waits until it can answer; raises `RoundFailed` if it ends or takes too long."""
        if self.commands.pong is None:
            return
        speaking = self._start("pong", self.commands.pong)
        self.pong = speaking.child
        ready = _heard(speaking, _START_S)
        if ready is None or not ready.get("ready"):
            raise RoundFailed("pong did not start in time")

    def ask(self) -> Counts:
        """Starts ping and waits for its report; raises `RoundFailed` if there is none or it has no numbers."""
        ping = self._start("ping", self.commands.ping)
        spec = self.commands.spec
        longest_s = WARM_UP_S + spec.seconds + spec.patience_ms / 1000 + _SLACK_S
        deadline = time.monotonic() + _START_S + spec.match_timeout_s + longest_s
        while time.monotonic() < deadline:
            report = _heard(ping, _LOOK_S)
            if report is not None:
                return self._read(report)
            if self.pong is not None and self.pong.exit_code is not None:
                raise RoundFailed(_joined(self.pong.describe_end(), self.pong.last_lines()))
        raise RoundFailed("ping did not end in time")

    def _start(self, name: str, command: Sequence[str]) -> AnsweringChild:
        return AnsweringChild(self.group.start(name, command, talk=True))

    def _read(self, report: Mapping[str, Any]) -> Counts:
        if not report.get("matched"):
            raise RoundFailed(f"ping and pong did not find each other within {self.commands.spec.match_timeout_s:g} s")
        if self.commands.must_share_memory and not report.get("shares_memory"):
            raise RoundFailed("the library did not hand messages over in shared memory")
        if report.get("is_alone"):
            raise RoundFailed(f"pong was gone after {report.get('sent')} messages")
        try:
            return Counts(**{name: int(report[name]) for name in ("sent", "lost", "late", "elapsed_ns")})
        except (KeyError, TypeError, ValueError):
            raise RoundFailed(f"ping reported {quoted(json.dumps(dict(report)))}") from None


def run_pair(commands: PairCommands, logs: Path) -> Counts:
    """Runs one round; raises `RoundFailed` if it has no numbers."""
    group = ProcessGroup(log_directory=logs, environment=commands.environment)
    try:
        pair = Pair(commands, group)
        pair.start_pong()
        return pair.ask()
    finally:
        group.stop()


def _heard(speaking: AnsweringChild, limit_s: float) -> Mapping[str, Any] | None:
    """Returns the next report, or ``None`` after the time limit; raises `RoundFailed` if there can be none."""
    try:
        return speaking.answer(limit_s=limit_s)
    except NotAnsweredYet:
        return None
    except ChildFailed as error:
        raise RoundFailed(_joined(error.message, error.details)) from None


def _joined(problem: str, last_lines: str) -> str:
    return f"{problem}: {last_lines}" if last_lines else problem


def cyclone_commands(case: LatencyCase, site: Site, *, domain: int, folder: Path) -> PairCommands:
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
    program = [sys.executable, "-m", "pytest_ldos.instruments.latency.peer"]
    ping, pong = _sides(case, spec, lambda role: [*program, json.dumps(asdict(replace(given, role=role)))])
    return PairCommands(
        ping=ping,
        pong=pong,
        environment=environment_of(case),
        samples=samples,
        must_share_memory=case.transport is Transport.SHARED_MEMORY,
        spec=spec,
    )


def _sides(
    case: LatencyCase, spec: LatencySpec, command: Callable[[str], list[str]]
) -> tuple[list[str], list[str] | None]:
    """Commands of ping and pong on their CPUs, made by role; without pong, ping has both roles."""
    if case.transport is Transport.ONE_PROCESS:
        return [*prefix_of(spec, (spec.ping_cpu, spec.pong_cpu)), *command(BOTH)], None
    return [*prefix_of(spec, (spec.ping_cpu,)), *command(PING)], [*prefix_of(spec, (spec.pong_cpu,)), *command(PONG)]


_TRANSPORTS: Final = {Transport.ONE_PROCESS: "DEFAULT", Transport.LOOPBACK: "UDPv4", Transport.SHARED_MEMORY: "SHM"}
"""Fast DDS's built-in transports; within one process it uses none."""


def rclcpp_commands(case: LatencyCase, site: Site, *, domain: int, folder: Path) -> PairCommands:
    """Returns the commands that measure a round of a case; raises `Unavailable` without a sourced workspace."""
    spec, samples = site.spec, folder / "times"
    program = ros_program(ROS_PACKAGE, "latency")
    shared = {
        "reliability": case.reliability.value,
        "size_bytes": case.size,
        "seconds": float(spec.seconds),
        "warm_up_s": WARM_UP_S,
        "patience_s": spec.patience_ms / 1000,
        "match_timeout_s": float(spec.match_timeout_s),
        "rate_hz": float(spec.rate_hz),
        "samples": str(samples),
    }
    ping, pong = _sides(case, spec, lambda role: [program, "--ros-args", *_parameters(role=role, **shared)])
    return PairCommands(
        ping=ping, pong=pong, environment=_environment(case, domain, folder), samples=samples, spec=spec
    )


def _parameters(**parameters: str | float) -> Iterator[str]:
    """Values on ROS's command line are YAML, of which JSON is a subset."""
    for name, value in parameters.items():
        yield from ("-p", f"{name}:={json.dumps(value)}")


def _environment(case: LatencyCase, domain: int, folder: Path) -> dict[str, str]:
    """Environment with discovery on this machine only: Cyclone DDS's configuration, ROS 2's setting for Fast DDS."""
    chosen = {
        "RMW_IMPLEMENTATION": case.program.rmw,
        "ROS_DOMAIN_ID": str(domain),
        "ROS_LOG_DIR": str(folder / "ros"),
        **dict.fromkeys(("ROS_STATIC_PEERS", "ROS_DISCOVERY_SERVER", "ROS_SUPER_CLIENT"), ""),
        "RCUTILS_LOGGING_USE_STDOUT": "0",
    }
    if case.program is Program.RCLCPP_CYCLONE:
        return {**chosen, **environment_of(case), "ROS_AUTOMATIC_DISCOVERY_RANGE": "SYSTEM_DEFAULT"}
    return {
        **chosen,
        **deaf_to_other_devices(domain),
        "FASTDDS_BUILTIN_TRANSPORTS": _TRANSPORTS[case.transport],
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
    }
