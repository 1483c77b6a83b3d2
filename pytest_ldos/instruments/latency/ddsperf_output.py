"""The output of ``ddsperf ping``: a line per second and peer, of halved round-trip times.

``[17] 2.001  host:18 size 1036 mean 9.386us min 7.441us 50% 9.208us 90% 10.21us 99% 28.137us max 3622.01us cnt 52896``:
process, seconds since it began, peer, size of the message, and percentiles of the last second's first 20 000
round trips, halved; ``cnt`` counts all. The first line printed may also cover the seconds in which peers were found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pytest_ldos.host.logs import quoted
from pytest_ldos.instruments.latency.timings import Percentiles

_UNITS: Final = {"ns": 1e-3, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6}
_TIME: Final = r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s)"
_NAMES: Final = ("mean", "min", "50%", "90%", "99%", "max")
_LINE: Final = re.compile(
    r"^\[\d+\] (\d+(?:\.\d+)?)\s+\S.* size (\d+) " + " ".join(rf"{name} {_TIME}" for name in _NAMES) + r" cnt (\d+)$"
)
_LIKE_ONE: Final = re.compile(r"\b(mean|cnt)\b")
_TIMED_OUT: Final = re.compile(r"ping timed out \(total (\d+) times\)")
_MET: Final = re.compile(r"participant \S+: new$", re.MULTILINE)


class DdsperfUnreadable(Exception):
    """A line does not have the known format of ddsperf's output."""


@dataclass(frozen=True)
class Second:
    """One line.

    Attributes:
        at_s: time of printing, since the start.
        size: message size, including its fixed fields.
        half: percentiles of halved round-trip times.
    """

    at_s: float
    size: int
    half: Percentiles


@dataclass(frozen=True)
class DdsperfOutput:
    """The whole output.

    Attributes:
        lost: messages without an answer.
        has_met: True if it saw another participant.
    """

    seconds: tuple[Second, ...]
    lost: int
    has_met: bool


def parse_ddsperf(text: str) -> DdsperfOutput:
    """Reads all lines; ignores those about other things.

    Raises:
        DdsperfUnreadable: a line of percentiles is damaged, or makes no sense.
    """
    timeouts = [int(number) for number in _TIMED_OUT.findall(text)]
    return DdsperfOutput(tuple(_seconds(text)), max(timeouts, default=0), bool(_MET.search(text)))


def _seconds(text: str) -> Iterator[Second]:
    for line in text.splitlines():
        match = _LINE.match(line.rstrip())
        if match is not None:
            yield _second(match)
        elif _LIKE_ONE.search(line):
            raise DdsperfUnreadable(f"ddsperf printed {quoted(line)}, which is not understood")


def _second(match: re.Match[str]) -> Second:
    at_s, size, *times, count = match.groups()
    values = [float(number) * _UNITS[unit] for number, unit in zip(times[::2], times[1::2], strict=True)]
    mean, low, p50, p90, p99, high = values
    if not (low <= p50 <= p90 <= p99 <= high and low <= mean <= high and int(count) > 0):
        raise DdsperfUnreadable(f"ddsperf printed {quoted(match.string)}, which makes no sense")
    half = Percentiles(count=int(count), low=low, mean=mean, p50=p50, p90=p90, p99=p99, p999=None, high=high)
    return Second(float(at_s), int(size), half)
