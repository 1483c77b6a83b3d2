"""Processes that answer each line with a line of JSON; every wait has a limit."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Mapping
from io import BufferedReader, TextIOWrapper
from typing import Any, Final, TypeVar, cast

from pytest_ldos.base.errors import LdosError
from pytest_ldos.host.logs import quoted
from pytest_ldos.host.processes import Child

LONGEST_LINE: Final = 1 << 24
"""Bytes; a longer line is treated as damaged."""

_POLL_S: Final = 0.05
_LAST_WORDS_S: Final = 0.5
_END_S: Final = 5.0

Read = TypeVar("Read")


class ChildFailed(LdosError):
    """A process ended, did not answer in time, or gave an answer that makes no sense."""


class NotAnsweredYet(ChildFailed):
    """The process did not answer in time, but still runs."""


class AnsweringChild:
    """A process started with pipes; see `ProcessGroup.start`."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._read, name=f"answers of {child.name}", daemon=True).start()

    def _read(self) -> None:
        """Reads bytes, not text: `answer` reports what cannot be decoded."""
        stream = cast("BufferedReader", cast("TextIOWrapper", self.child.process.stdout).buffer)
        try:
            while line := stream.readline(LONGEST_LINE):
                self._lines.put(line)
        except ValueError:  # it was closed at the end
            return

    def ask(self, question: str, *, limit_s: float) -> Mapping[str, Any]:
        """Writes a question and returns the answer.

        Raises:
            ChildFailed: the process does not answer, or not with a JSON object.
        """
        pipe = self.child.process.stdin
        assert pipe is not None
        try:
            pipe.write(f"{question}\n")
            pipe.flush()
        except OSError:
            raise self._failed() from None
        return self.answer(limit_s=limit_s)

    def answer(self, *, limit_s: float) -> Mapping[str, Any]:
        """Returns the next answer; see `ask`."""
        line = self._next_line(limit_s)
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            said = quoted(line.decode("utf-8", errors="replace"))
            raise ChildFailed(f"{self.child.name} said what is no answer: {said}")
        return answer

    def _next_line(self, limit_s: float) -> bytes:
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            try:
                return self._lines.get(timeout=_POLL_S)
            except queue.Empty:
                if self.child.exit_code is not None:
                    return self._last_line()
        raise NotAnsweredYet(f"{self.child.name} did not answer within {limit_s:g} s", details=self.child.last_lines())

    def _last_line(self) -> bytes:
        """Returns the line that the process wrote right before it ended."""
        try:
            return self._lines.get(timeout=_LAST_WORDS_S)
        except queue.Empty:
            raise self._failed() from None

    def _failed(self) -> ChildFailed:
        how = self.child.describe_end() if self.child.exit_code is not None else f"{self.child.name} does not listen"
        return ChildFailed(how, details=self.child.last_lines())

    def close(self) -> None:
        """Ends the conversation: the process then ends by itself after a while; otherwise its owner ends it."""
        pipe = self.child.process.stdin
        assert pipe is not None
        try:
            pipe.close()
        except BrokenPipeError:
            return

    def await_end(self) -> None:
        """Waits, for a limited time, until the process has ended by itself."""
        deadline = time.monotonic() + _END_S
        while self.child.exit_code is None and time.monotonic() < deadline:
            time.sleep(_POLL_S / 10)


def whole(answer: Mapping[str, Any], key: str, *, least: int = 0) -> int:
    """Returns a whole number from an answer.

    Raises:
        ChildFailed: the value is missing, no whole number, or below `least`.
    """
    value = answer.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ChildFailed(f"an answer has {key} {value!r}, which is no whole number from {least} on")
    return value


def summary_of(error: LdosError) -> str:
    """Returns the error in one line, as the failure of a round."""
    last = error.details.strip().splitlines()[-1:]
    return ": ".join([error.message, *last])


def attempt(action: Callable[[], Read]) -> Read | str:
    """Returns the action's result, or a text with the reason if a process failed."""
    try:
        return action()
    except ChildFailed as error:
        return summary_of(error)
