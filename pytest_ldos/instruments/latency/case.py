"""Cases of rounds: a program and every setting that affects its numbers."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from itertools import product
from typing import Final, Self

from pytest_ldos.instruments.latency.spec import NO_CPU, NOT_SET, LatencySpec, Transport, Trigger
from pytest_ldos.scenario.loads.flood import Reliability


class Program(StrEnum):
    """The measured program, and its middleware.

    Attributes:
        rmw: middleware of a program on rclcpp; empty for other programs.
    """

    rmw: str

    def __new__(cls, value: str, rmw: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_, member.rmw = value, rmw
        return member

    CYCLONE = "cyclonedds"
    """This package's program over the embedded stack's library."""

    TWIN = "twin of ddsperf"
    """This package's program over ddsperf's library, for validation."""

    DDSPERF = "ddsperf"
    RCLCPP_CYCLONE = "rclcpp, cyclonedds", "rmw_cyclonedds_cpp"
    RCLCPP_FASTDDS = "rclcpp, fastrtps", "rmw_fastrtps_cpp"

    @property
    def is_cyclone(self) -> bool:
        return self is not Program.RCLCPP_FASTDDS


@dataclass(frozen=True, kw_only=True)
class Setup:
    """A combination of settings, independent of the program measured.

    Attributes:
        size: octets of data in a message.
        fragment_size, max_message_size: bytes; 0 for Cyclone DDS's default.
    """

    transport: Transport
    size: int
    reliability: Reliability
    fragment_size: int = NOT_SET
    max_message_size: int = NOT_SET

    @property
    def is_default(self) -> bool:
        """True if it also applies to middlewares without Cyclone DDS's settings."""
        return self.fragment_size == self.max_message_size == NOT_SET

    @property
    def changes(self) -> str:
        """Settings that differ from Cyclone DDS's defaults; empty if none does."""
        parts = []
        if self.fragment_size:
            parts.append(f"FragmentSize {self.fragment_size}")
        if self.max_message_size:
            parts.append(f"MaxMessageSize {self.max_message_size}")
        return ", ".join(parts)

    @property
    def words(self) -> str:
        parts = (self.transport, show_size(self.size), self.reliability, self.changes)
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True, kw_only=True)
class Case(Setup):
    """A setup and the program measured with it."""

    program: Program

    @property
    def setup(self) -> Setup:
        return Setup(**{each.name: getattr(self, each.name) for each in fields(Setup)})

    def name(self, spec: LatencySpec) -> str:
        """Returns a name with all settings that affect the numbers."""
        return ", ".join([self.program, self.words, *_common(spec, self.transport)])


def setups_of(spec: LatencySpec) -> list[Setup]:
    """Returns every requested combination of settings."""
    every = product(spec.transport_list, spec.reliability_list, spec.fragment_list, spec.message_list, spec.size_list)
    return [
        Setup(transport=transport, reliability=reliability, fragment_size=fragment, max_message_size=message, size=size)
        for transport, reliability, fragment, message, size in every
    ]


def cases_of(setups: Sequence[Setup], programs: Sequence[Program]) -> list[Case]:
    """Lists all programs, setup by setup; a program that ignores Cyclone DDS's settings is listed once."""
    return [
        Case(program=program, **vars(setup))
        for setup in setups
        for program in programs
        if program.is_cyclone or setup.is_default
    ]


def show_size(size: int) -> str:
    """``64 KiB``."""
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"


def _common(spec: LatencySpec, transport: Transport) -> Iterator[str]:
    if spec.trigger is Trigger.WAITSET and transport is not Transport.ONE_PROCESS:
        yield "waitset"
    if spec.rate_hz:
        yield f"{spec.rate_hz:g} Hz"
    if (spec.ping_cpu, spec.pong_cpu) != (NO_CPU, NO_CPU):
        yield f"CPUs {_cpu(spec.ping_cpu)} and {_cpu(spec.pong_cpu)}"
    if spec.priority:
        yield f"FIFO {spec.priority}"


def _cpu(number: int) -> str:
    return "any" if number == NO_CPU else str(number)


_CHRT: Final = "chrt"
TASKSET: Final = "taskset"


def prefix_of(spec: LatencySpec, cpus: tuple[int, ...]) -> list[str]:
    """Returns a command that ends in an ``exec``, or an empty list.

    Args:
        cpus: CPUs to pin the program to; `NO_CPU` among them leaves it unpinned.
    """
    pinned = [] if NO_CPU in cpus else [TASKSET, "--cpu-list", ",".join(map(str, sorted(set(cpus))))]
    real_time = [_CHRT, "--fifo", str(spec.priority)] if spec.priority != NOT_SET else []
    return [*pinned, *real_time]


def why_no_priority(priority: int) -> str:
    """Returns the reason why SCHED_FIFO is not permitted; empty if it is, or `priority` is not set."""
    if priority == NOT_SET:
        return ""
    if shutil.which(_CHRT) is None:
        return f"{_CHRT} not found (sudo apt-get install util-linux)"
    tried = subprocess.run(
        [_CHRT, "--fifo", str(priority), "true"],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        timeout=10,
    )
    if tried.returncode == 0:
        return ""
    return f"{tried.stderr.strip() or 'refused'} (needs CAP_SYS_NICE, or rtprio in /etc/security/limits.conf)"
