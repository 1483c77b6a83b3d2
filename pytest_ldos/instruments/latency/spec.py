"""Settings of ``ldos latency``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeVar

from pytest_ldos.base.errors import ConfigurationError, require
from pytest_ldos.scenario.described import described
from pytest_ldos.scenario.fields import in_unit_of
from pytest_ldos.scenario.loads.flood import Reliability
from pytest_ldos.scenario.parsing import parse_word

LARGEST_BYTES: Final = 1 << 20
FRAGMENT_BYTES: Final = range(1025, 65501)
"""Values that Cyclone DDS accepts as FragmentSize."""

MESSAGE_BYTES: Final = range(1025, 65501)
"""Values that Cyclone DDS accepts as MaxMessageSize: the capacity of a UDP datagram, less its header."""

LONGEST_ROUND_S: Final = 60.0
NO_CPU: Final = -1
NOT_SET: Final = 0

_MOST_CASES: Final = 200

Word = TypeVar("Word", bound=StrEnum)


class Transport(StrEnum):
    """The path of messages from one side to the other."""

    ONE_PROCESS = "one_process"
    LOOPBACK = "loopback"
    SHARED_MEMORY = "shared_memory"


class Trigger(StrEnum):
    """The thread on which messages are taken.

    Within one process both sides wait: a listener would answer on the thread that writes.
    """

    LISTENER = "listener"
    WAITSET = "waitset"


@dataclass(frozen=True, kw_only=True)
class LatencySpec:
    """Settings; lists are separated by commas, and each combination is measured."""

    sizes: str = field(
        default="1,1KiB,64KiB,1MiB",
        metadata=described(
            "Bytes of data in a message: 1 to 1MiB, several with commas; 12 more hold its number, key and length."
        ),
    )
    reliability: str = field(
        default=Reliability.RELIABLE.value, metadata=described("reliable, best_effort, or both with a comma.")
    )
    transports: str = field(
        default=f"{Transport.ONE_PROCESS.value},{Transport.LOOPBACK.value}",
        metadata=described("one_process, loopback, shared_memory; several with commas."),
    )
    trigger: Trigger = field(
        default=Trigger.LISTENER, metadata=described("Takes messages on the middleware's thread, or on a waiting one.")
    )
    fragment_sizes: str = field(
        default="",
        metadata=described("Cyclone DDS's FragmentSize, in bytes; several with commas. [default: Cyclone DDS's]"),
    )
    max_message_sizes: str = field(
        default="",
        metadata=described("Cyclone DDS's MaxMessageSize, in bytes; several with commas. [default: Cyclone DDS's]"),
    )
    seconds: float = field(default=1.0, metadata=described("Seconds of a round, after a warm-up."))
    rounds: int = field(default=5, metadata=described("Rounds of each case; cases are interleaved."))
    rate_hz: float = field(
        default=0.0, metadata=described("Messages a second; 0 sends the next when the answer is there.", "--rate")
    )
    ping_cpu: int = field(default=NO_CPU, metadata=described("CPU of the side that asks; -1 for any."))
    pong_cpu: int = field(default=NO_CPU, metadata=described("CPU of the side that answers; -1 for any."))
    priority: int = field(default=NOT_SET, metadata=described("SCHED_FIFO priority of both sides; 0 for none."))
    patience_ms: float = field(
        default=250.0, metadata=described("Milliseconds after which an answer is lost.", "--patience")
    )
    match_timeout_s: float = field(
        default=10.0,
        metadata=described(
            "Seconds that both sides have to find each other; otherwise the round ends.", "--match-timeout"
        ),
    )
    ddsperf: bool = field(
        default=True, metadata=described("Measure Cyclone DDS's own benchmark, too, where it is installed.")
    )
    ros: bool = field(
        default=True, metadata=described("Measure rclcpp with each middleware, too, where ROS 2 is sourced.")
    )

    def __post_init__(self) -> None:
        require(0.1 <= self.seconds <= LONGEST_ROUND_S, f"a round of {self.seconds:g} s", remedy=_between(0.1, 60))
        require(1 <= self.rounds <= 1000, f"{self.rounds} rounds", remedy=_between(1, 1000))
        require(0 <= self.rate_hz <= 1e6, f"a rate of {self.rate_hz:g} Hz", remedy=_between(0, 1_000_000))
        require(
            not 0 < self.rate_hz * self.seconds < 1,
            f"{self.rate_hz:g} Hz give no message in each round of {self.seconds:g} s",
            remedy=f"ask for at least {1 / self.seconds:g} Hz, or for longer rounds",
        )
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
        return _read_bytes(self.fragment_sizes or "0", "fragment_sizes", FRAGMENT_BYTES, or_default=True)

    @property
    def message_list(self) -> tuple[int, ...]:
        """The sizes, in which `NOT_SET` stands for the default."""
        return _read_bytes(self.max_message_sizes or "0", "max_message_sizes", MESSAGE_BYTES, or_default=True)


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
