"""The conversation with a topology's processes: lines of JSON in both directions; every wait has a limit."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Self

from pytest_ldos.base.errors import LdosError
from pytest_ldos.host.processes import Child

_PIECE: Final = 65536

Report = Mapping[str, Any]


class ProcessEnded(LdosError):
    """A process of the topology ended too early.

    Attributes:
        at_ns: time at which that was noticed.
    """

    def __init__(self, child: Child, at_ns: int) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.process.wait(timeout=1)  # its output is closed a moment before it can be reaped
        super().__init__(child.describe_end(), details=child.last_lines())
        self.at_ns = at_ns


class Conversation:
    """The conversation with all processes of a topology. Every wait reads their reports."""

    def __init__(self, children: Sequence[Child]) -> None:
        self._children = {child.name: child for child in children}
        self._selector = selectors.DefaultSelector()
        self._text = dict.fromkeys(self._children, b"")
        self._done: set[str] = set()
        self.reports: dict[str, list[Report]] = {name: [] for name in self._children}
        for child in children:
            assert child.process.stdout is not None
            self._selector.register(child.process.stdout, selectors.EVENT_READ, child)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()

    def tell(self, command: Report) -> None:
        """Sends a command to all processes that still listen."""
        line = json.dumps(command) + "\n"
        for child in self._children.values():
            assert child.process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                child.process.stdin.write(line)
                child.process.stdin.flush()

    def await_all(self, event: str, *, limit_s: float, tolerant: bool = False) -> list[str]:
        """Reads until each process has reported an event; returns the names of those that did not in time.

        Args:
            tolerant: True if processes may have ended.

        Raises:
            ProcessEnded: a process ended although `tolerant` is False.
        """
        deadline_s = time.monotonic() + limit_s
        while waiting := self._without(event, tolerant=tolerant):
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return waiting
            for ended in self._read(left_s):
                if not tolerant and ended.name not in self._done:
                    raise ProcessEnded(ended, time.monotonic_ns())
        return []

    def await_end(self, *, limit_s: float) -> None:
        """Waits until all processes have ended, or for `limit_s`."""
        deadline_s = time.monotonic() + limit_s
        while self._selector.get_map() and (left_s := deadline_s - time.monotonic()) > 0:
            for _ in self._read(left_s):
                pass

    def _without(self, event: str, *, tolerant: bool) -> list[str]:
        listening = {key.data.name for key in self._selector.get_map().values()} if tolerant else self._children
        return [name for name in listening if not any(each["event"] == event for each in self.reports[name])]

    def _read(self, limit_s: float) -> Iterator[Child]:
        """Reads what is available; yields processes whose output ended."""
        for key, _ in self._selector.select(limit_s):
            child: Child = key.data
            piece = os.read(key.fd, _PIECE)
            if not piece:
                self._selector.unregister(key.fileobj)
                yield child
            *lines, self._text[child.name] = (self._text[child.name] + piece).split(b"\n")
            for line in lines:
                self._note(child.name, line)

    def _note(self, name: str, line: bytes) -> None:
        """Stores a report; ignores other lines, which come from the middleware."""
        with contextlib.suppress(ValueError, TypeError, KeyError):
            report = json.loads(line)
            if report["event"] == "done":
                self._done.add(name)
            self.reports[name].append(report)

    def said(self, event: str) -> Iterator[tuple[str, Report]]:
        """Yields all reports of an event, each with the name of its process."""
        for name, reports in self.reports.items():
            yield from ((name, each) for each in reports if each["event"] == event)
