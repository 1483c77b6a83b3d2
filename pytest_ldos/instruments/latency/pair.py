"""Ping and pong processes, which send and answer messages and report in lines of JSON (see `peer`)."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_ldos.host.kept import AnsweringChild, ChildFailed, NotAnsweredYet
from pytest_ldos.host.processes import Child, ProcessGroup, quoted
from pytest_ldos.instruments.latency.exchange import Counts

_LOOK_S: Final = 0.1
_START_S: Final = 20.0
"""Time limit for an interpreter's start on a busy machine."""


@dataclass(frozen=True, kw_only=True)
class PairCommands:
    """Commands that start both sides.

    Attributes:
        ping: command of the ping side, or of a process with both sides.
        pong: ``None`` if one process has both sides.
        samples: file of `ping`'s times.
        must_share_memory: True if a round without shared memory has failed.
        longest_s: time limit of a round after both sides have found each other.
    """

    ping: Sequence[str]
    pong: Sequence[str] | None
    environment: Mapping[str, str]
    samples: Path
    match_timeout_s: float
    longest_s: float
    must_share_memory: bool = False


class RoundFailed(Exception):
    """A round has no numbers; the message has the reason."""


@dataclass
class Pair:
    """Both processes; see `run_pair`."""

    commands: PairCommands
    group: ProcessGroup
    pong: Child | None = None

    def start_pong(self) -> None:
        """Starts pong and waits until it can answer.

        Raises:
            RoundFailed: it ended or took too long.
        """
        if self.commands.pong is None:
            return
        speaking = self._start("pong", self.commands.pong)
        self.pong = speaking.child
        ready = _heard(speaking, _START_S)
        if ready is None or not ready.get("ready"):
            raise RoundFailed("pong did not start in time")

    def ask(self) -> Counts:
        """Starts ping and waits for its report.

        Raises:
            RoundFailed: the sides did not find each other, one of them ended, or there was no report.
        """
        ping = self._start("ping", self.commands.ping)
        deadline = time.monotonic() + _START_S + self.commands.match_timeout_s + self.commands.longest_s
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
            raise RoundFailed(f"ping and pong did not find each other within {self.commands.match_timeout_s:g} s")
        if self.commands.must_share_memory and not report.get("shares_memory"):
            raise RoundFailed("the library did not hand messages over in shared memory")
        if report.get("is_alone"):
            raise RoundFailed(f"pong was gone after {report.get('sent')} messages")
        try:
            return Counts(**{name: int(report[name]) for name in ("sent", "lost", "late", "elapsed_ns")})
        except (KeyError, TypeError, ValueError):
            raise RoundFailed(f"ping reported {quoted(json.dumps(dict(report)))}") from None


def run_pair(commands: PairCommands, logs: Path) -> Counts:
    """Runs one round.

    Raises:
        RoundFailed: the round has no numbers.
    """
    group = ProcessGroup(log_directory=logs, environment=commands.environment)
    try:
        pair = Pair(commands, group)
        pair.start_pong()
        return pair.ask()
    finally:
        group.stop()


def _heard(speaking: AnsweringChild, limit_s: float) -> Mapping[str, Any] | None:
    """Returns the next report; ``None`` after the time limit.

    Raises:
        RoundFailed: the process has ended, or printed something else.
    """
    try:
        return speaking.answer(limit_s=limit_s)
    except NotAnsweredYet:
        return None
    except ChildFailed as error:
        raise RoundFailed(_joined(error.message, error.details)) from None


def _joined(problem: str, last_lines: str) -> str:
    return f"{problem}: {last_lines}" if last_lines else problem
