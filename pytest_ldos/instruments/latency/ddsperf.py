"""Rounds of ddsperf, Cyclone DDS's own benchmark, for validation.

``[17] 2.001  host:18 size 1036 mean 9.386us min 7.441us 50% 9.208us 90% 10.21us 99% 28.137us max 3622.01us cnt 52896``:
process, seconds since it began, peer, size of the message, and percentiles of the last second's first 20 000
round trips, halved; ``cnt`` counts all. The first line printed may also cover the seconds in which peers were found.
"""

from __future__ import annotations

import math
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.host.processes import Child, ProcessGroup, quoted
from pytest_ldos.instruments.latency.case import Case, prefix_of
from pytest_ldos.instruments.latency.cyclone import DDSPERF, environment_of
from pytest_ldos.instruments.latency.exchange import Exchange
from pytest_ldos.instruments.latency.pair import RoundFailed
from pytest_ldos.instruments.latency.programs import Site
from pytest_ldos.instruments.latency.spec import LatencySpec, Transport
from pytest_ldos.instruments.latency.timings import Percentiles, combine
from pytest_ldos.scenario.loads.flood import Reliability

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
    """Statistics of one line.

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
    """Parses the output; ignores other lines.

    Raises:
        DdsperfUnreadable: a line of percentiles is damaged or invalid.
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


FIXED_BYTES: Final = 12
"""Number, key and length in a message, which ddsperf's sizes include."""

_BEFORE_S: Final = 2
"""Seconds before the measurement: discovery, then warm-up."""

_SLACK_S: Final = 10.0


def measure_ddsperf(case: Case, site: Site, *, domain: int, block: int, folder: Path) -> Exchange:
    """Measures one round of the same number of seconds, after a warm-up second."""
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
    """Runs a second longer than ping, so that it does not end first."""
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
    """Rejects results of one side after the other has ended; pong may run longer."""
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
