"""Settings of ``ldos latency``, and the cases of its rounds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Final, Self, TypeVar

from pytest_ldos.base.errors import ConfigurationError, require
from pytest_ldos.host.availability import run_program
from pytest_ldos.instruments.study import setting
from pytest_ldos.scenario.fields import in_unit_of
from pytest_ldos.scenario.loads import Reliability
from pytest_ldos.scenario.words import parse_word

LARGEST_BYTES: Final = 1 << 20
DATAGRAM_BYTES: Final = range(1025, 65501)
"""Values that Cyclone DDS accepts as FragmentSize and MaxMessageSize: up to a UDP datagram, less its header."""

NO_CPU: Final = -1
NOT_SET: Final = 0

_MOST_CASES: Final = 200

Word = TypeVar("Word", bound=StrEnum)


class Transport(StrEnum):
    ONE_PROCESS = "one_process"
    LOOPBACK = "loopback"
    SHARED_MEMORY = "shared_memory"


class Trigger(StrEnum):
    """The thread on which messages are taken; in a process with both sides, never the one that writes."""

    LISTENER = "listener"
    WAITSET = "waitset"


@dataclass(frozen=True, kw_only=True)
class LatencySpec:
    """Settings; lists are separated by commas, and each combination is measured."""

    sizes: str = setting(
        "1,1KiB,64KiB,1MiB",
        "Bytes of data in a message: 1 to 1MiB, several with commas; 12 more hold its number, key and length.",
    )
    reliability: str = setting(Reliability.RELIABLE.value, "reliable, best_effort, or both with a comma.")
    transports: str = setting(
        f"{Transport.ONE_PROCESS.value},{Transport.LOOPBACK.value}",
        "one_process, loopback, shared_memory; several with commas.",
    )
    trigger: Trigger = setting(Trigger.LISTENER, "Takes messages on the middleware's thread, or on a waiting one.")
    fragment_sizes: str = setting(
        "", "Cyclone DDS's FragmentSize, in bytes; several with commas. [default: Cyclone DDS's]"
    )
    max_message_sizes: str = setting(
        "", "Cyclone DDS's MaxMessageSize, in bytes; several with commas. [default: Cyclone DDS's]"
    )
    seconds: float = setting(1.0, "Seconds of a round, after a warm-up.")
    rounds: int = setting(5, "Rounds of each case; cases are interleaved.")
    rate_hz: float = setting(0.0, "Messages a second; 0 sends the next when the answer is there.", "--rate")
    ping_cpu: int = setting(NO_CPU, "CPU of the side that asks; -1 for any.")
    pong_cpu: int = setting(NO_CPU, "CPU of the side that answers; -1 for any.")
    priority: int = setting(NOT_SET, "SCHED_FIFO priority of both sides; 0 for none.")
    patience_ms: float = setting(250.0, "Milliseconds after which an answer is lost.", "--patience")
    match_timeout_s: float = setting(
        10.0, "Seconds that both sides have to find each other; otherwise the round ends.", "--match-timeout"
    )
    ddsperf: bool = setting(True, "Measure Cyclone DDS's own benchmark, too, where it is installed.")
    ros: bool = setting(True, "Measure rclcpp with each middleware, too, where ROS 2 is sourced.")

    def __post_init__(self) -> None:
        require(0.1 <= self.seconds <= 60, f"a round of {self.seconds:g} s", remedy=_between(0.1, 60))
        require(1 <= self.rounds <= 1000, f"{self.rounds} rounds", remedy=_between(1, 1000))
        require(0 <= self.rate_hz <= 1e6, f"a rate of {self.rate_hz:g} Hz", remedy=_between(0, 1_000_000))
        too_slow = f"{self.rate_hz:g} Hz give no message in each round of {self.seconds:g} s"
        faster = f"ask for at least {1 / self.seconds:g} Hz, or for longer rounds"
        require(not 0 < self.rate_hz * self.seconds < 1, too_slow, remedy=faster)
        require(1 <= self.patience_ms <= 60_000, f"a patience of {self.patience_ms:g} ms", remedy=_between(1, 60_000))
        require(0.1 <= self.match_timeout_s <= 300, f"{self.match_timeout_s:g} s to match", remedy=_between(0.1, 300))
        require(NOT_SET <= self.priority <= 99, f"a priority of {self.priority}", remedy=_between(0, 99))
        for name in ("ping_cpu", "pong_cpu"):
            cpu = getattr(self, name)
            require(cpu >= NO_CPU, f"{name} is {cpu}", remedy="give the number of a CPU, or -1 for none")
        count = 1
        for name in ("size", "reliability", "transport", "fragment", "message"):
            count *= len(getattr(self, f"{name}_list"))
        require(count <= _MOST_CASES, f"{count} combinations", remedy=f"at most {_MOST_CASES} are measured at once")

    @property
    def size_list(self) -> tuple[int, ...]:
        return _read_bytes(self.sizes, "sizes", range(1, LARGEST_BYTES + 1))

    @property
    def reliability_list(self) -> tuple[Reliability, ...]:
        return _read_words(Reliability, self.reliability, "reliability")

    @property
    def transport_list(self) -> tuple[Transport, ...]:
        return _read_words(Transport, self.transports, "transports")

    @property
    def fragment_list(self) -> tuple[int, ...]:
        """The sizes, in which `NOT_SET` stands for the default."""
        return _read_bytes(self.fragment_sizes or "0", "fragment_sizes", DATAGRAM_BYTES, or_default=True)

    @property
    def message_list(self) -> tuple[int, ...]:
        return _read_bytes(self.max_message_sizes or "0", "max_message_sizes", DATAGRAM_BYTES, or_default=True)


def _between(low: float, high: float) -> str:
    return f"between {low:g} and {high:g} are possible"


def _read_words(kind: type[Word], text: str, name: str) -> tuple[Word, ...]:
    found = []
    for part in _parts(text, name):
        try:
            found.append(kind(parse_word(kind, part)))
        except ValueError as error:
            raise ConfigurationError(f"{name} holds {part!r}", remedy=f"it must be {error}") from None
    return tuple(dict.fromkeys(found))


def _read_bytes(text: str, name: str, allowed: range, *, or_default: bool = False) -> tuple[int, ...]:
    found = []
    for part in _parts(text, name):
        number = in_unit_of("bytes", part)
        fits = isinstance(number, int) and (number in allowed or (or_default and number == NOT_SET))
        remedy = f"whole numbers of {allowed[0]} to {allowed[-1]} bytes are possible, as in 1024 or 1KiB"
        require(fits, f"{name} holds {part!r}", remedy=remedy)
        found.append(int(number))
    return tuple(dict.fromkeys(found))


def _parts(text: str, name: str) -> Iterator[str]:
    parts = [part.strip() for part in text.split(",")]
    require(all(parts), f"{name} is {text!r}: a value is empty", remedy="write values with commas between them")
    yield from parts


class Program(StrEnum):
    """The measured program; `rmw` is the middleware of a program on rclcpp, empty for others."""

    rmw: str

    def __new__(cls, value: str, rmw: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_, member.rmw = value, rmw
        return member

    CYCLONE = "cyclonedds"  # this package's program over the embedded stack's library
    TWIN = "twin of ddsperf"  # this package's program over ddsperf's library, for validation
    DDSPERF = "ddsperf"
    RCLCPP_CYCLONE = "rclcpp, cyclonedds", "rmw_cyclonedds_cpp"
    RCLCPP_FASTDDS = "rclcpp, fastrtps", "rmw_fastrtps_cpp"

    @property
    def is_cyclone(self) -> bool:
        return self is not Program.RCLCPP_FASTDDS


@dataclass(frozen=True, kw_only=True)
class Setup:
    """A combination of settings, independent of the program measured; sizes are bytes, 0 is Cyclone DDS's default."""

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
    def words(self) -> str:
        """Description with the settings that differ from Cyclone DDS's defaults."""
        parts = [self.transport, show_size(self.size), self.reliability]
        if self.fragment_size:
            parts.append(f"FragmentSize {self.fragment_size}")
        if self.max_message_size:
            parts.append(f"MaxMessageSize {self.max_message_size}")
        return ", ".join(parts)


@dataclass(frozen=True, kw_only=True)
class LatencyCase(Setup):
    """A setup and the program measured with it."""

    program: Program

    def name(self, spec: LatencySpec) -> str:
        """Returns a name with all settings that affect the numbers."""
        parts = [self.program, self.words]
        if spec.trigger is Trigger.WAITSET and self.transport is not Transport.ONE_PROCESS:
            parts.append("waitset")
        if spec.rate_hz:
            parts.append(f"{spec.rate_hz:g} Hz")
        cpus = (spec.ping_cpu, spec.pong_cpu)
        if cpus != (NO_CPU, NO_CPU):
            parts.append("CPUs " + " and ".join("any" if cpu == NO_CPU else str(cpu) for cpu in cpus))
        if spec.priority:
            parts.append(f"FIFO {spec.priority}")
        return ", ".join(parts)


def setups_of(spec: LatencySpec) -> list[Setup]:
    """Returns every requested combination of settings."""
    every = product(spec.transport_list, spec.reliability_list, spec.fragment_list, spec.message_list, spec.size_list)
    return [
        Setup(transport=transport, reliability=reliability, fragment_size=fragment, max_message_size=message, size=size)
        for transport, reliability, fragment, message, size in every
    ]


def cases_of(setups: Sequence[Setup], programs: Sequence[Program]) -> list[LatencyCase]:
    """Lists all programs, setup by setup; a program that ignores Cyclone DDS's settings is listed once."""
    return [
        LatencyCase(program=program, **vars(setup))
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


_CHRT: Final = "chrt"
TASKSET: Final = "taskset"


def prefix_of(spec: LatencySpec, cpus: tuple[int, ...]) -> list[str]:
    """Returns a command that ends in an ``exec``, or an empty list; with `NO_CPU` it leaves the program unpinned."""
    pinned = [] if NO_CPU in cpus else [TASKSET, "--cpu-list", ",".join(map(str, sorted(set(cpus))))]
    real_time = [_CHRT, "--fifo", str(spec.priority)] if spec.priority != NOT_SET else []
    return [*pinned, *real_time]


def why_no_priority(priority: int) -> str:
    """Returns the reason why SCHED_FIFO is not permitted; empty if it is, or `priority` is not set."""
    if priority == NOT_SET:
        return ""
    if shutil.which(_CHRT) is None:
        return f"{_CHRT} not found (sudo apt-get install util-linux)"
    tried = run_program([_CHRT, "--fifo", str(priority), "true"], timeout_s=10)
    if tried.returncode == 0:
        return ""
    return f"{tried.stderr.strip() or 'refused'} (needs CAP_SYS_NICE, or rtprio in /etc/security/limits.conf)"
