"""Settings of ``ldos latency``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.requirements import require
from pytest_ldos.scenario.loads.dds_flood import Reliability
from pytest_ldos.scenario.parsing import parse_word
from pytest_ldos.scenario.quantity_text import in_unit_of

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
    """Settings; what is a list has commas between its values, and each combination is measured.

    Attributes:
        sizes: octets of data in a message, of 1 B to 1 MiB; 12 more hold its number, key and length.
        reliability: ``reliable``, ``best_effort``, or both.
        transports: of ``one_process``, ``loopback`` and ``shared_memory``.
        fragment_sizes: Cyclone DDS's FragmentSize, in bytes; its default where empty.
        max_message_sizes: Cyclone DDS's MaxMessageSize, in bytes; its default where empty.
        trigger: whether messages are taken on the middleware's thread, or on one that waits.
        seconds: that a round measures, after a warm-up.
        rounds: of each case; cases take turns.
        rate_hz: messages a second; 0 sends the next when the answer is there.
        ping_cpu, pong_cpu: that each side is confined to; -1 leaves it to the kernel.
        priority: of both sides under SCHED_FIFO; 0 leaves them to the usual scheduler.
        patience_ms: an answer that takes longer is lost.
        match_timeout_s: sides that have not found each other by then end the round.
        ddsperf: whether it is measured, too, where it is installed.
        ros: whether rclcpp is measured with each of its middlewares, too, where ROS 2 is sourced.
    """

    sizes: str = "1,1KiB,64KiB,1MiB"
    reliability: str = Reliability.RELIABLE.value
    transports: str = f"{Transport.ONE_PROCESS.value},{Transport.LOOPBACK.value}"
    trigger: Trigger = Trigger.LISTENER
    fragment_sizes: str = ""
    max_message_sizes: str = ""
    seconds: float = 1.0
    rounds: int = 5
    rate_hz: float = 0.0
    ping_cpu: int = NO_CPU
    pong_cpu: int = NO_CPU
    priority: int = NOT_SET
    patience_ms: float = 250.0
    match_timeout_s: float = 10.0
    ddsperf: bool = True
    ros: bool = True

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
