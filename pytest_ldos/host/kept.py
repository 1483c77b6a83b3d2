"""Processes that always end with their owner, and processes that answer lines with JSON.

``python -m pytest_ldos.host.kept MARK PATIENCE_S COMMAND…``, the keeper, runs a command until its own standard input
ends, until SIGINT or SIGTERM, or until the command ends. Then the command gets SIGINT; after PATIENCE_S seconds, all
that remain get SIGINT, SIGTERM and SIGKILL, PATIENCE_S seconds each. A killed launcher leaves its processes, and one in
a session of its own gets no signal of the group: the keeper adopts orphans, and finds its processes also by
`MARK_VARIABLE`.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import queue
import secrets
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import psutil

from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.files import opened_log
from pytest_ldos.host.fingerprint import pass_on, pids_with
from pytest_ldos.host.processes import Child, comes_true, owned_by_us, quoted

MARK_VARIABLE: Final = "PYTEST_LDOS_TREE"
LADDER: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)

_PR_SET_CHILD_SUBREAPER: Final = 36
_POLL_S: Final = 0.02


class _Keeper:
    def __init__(self, mark: str, patience_s: float, command: list[str]) -> None:
        self._mark = mark
        self._patience_s = patience_s
        self._wakeup, self._signals = os.pipe()
        os.set_blocking(self._signals, False)
        signal.set_wakeup_fd(self._signals)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)  # only against the default action: the wake-up descriptor has it
        environment = {**os.environ, MARK_VARIABLE: mark}
        self._command = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment, process_group=0)

    def run(self) -> int:
        self._await_reason_to_stop()
        self._stop_all()
        code = self._command.poll()
        return 1 if code is None else abs(code)

    def _await_reason_to_stop(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
            selector.register(self._wakeup, selectors.EVENT_READ)
            while self._command.poll() is None:
                for key, _ in selector.select():
                    heard = os.read(key.fd, 64)
                    if not heard or (key.fd == self._wakeup and set(heard) - {signal.SIGCHLD}):
                        return
                self._reap()

    def _stop_all(self) -> None:
        """Signals the command first: a launcher forwards SIGINT, and nodes that get it twice do not clean up."""
        if self._command.poll() is None:
            self._command.send_signal(signal.SIGINT)
            comes_true(lambda: self._command.poll() is not None, limit_s=self._patience_s, poll_s=_POLL_S)
        for number in LADDER:
            for pid in self._running():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
            if comes_true(lambda: not self._running(), limit_s=self._patience_s, poll_s=_POLL_S):
                return

    def _running(self) -> set[int]:
        self._reap()
        found = set(pids_with({MARK_VARIABLE: self._mark}))
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.status() != psutil.STATUS_ZOMBIE:
                    found.add(process.pid)
        return found - {os.getpid()}

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                if ended.si_pid == self._command.pid:
                    self._command.poll()
                else:
                    os.waitpid(ended.si_pid, 0)


def main() -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")
    return _Keeper(sys.argv[1], float(sys.argv[2]), sys.argv[3:]).run()


_BY_SHELL: Final = ("sh", "-c", 'exec "$@"', "sh")
"""Shell in front of Python, because debuggers (debugpy, VizTracer) rewrite commands that begin with Python."""

PATIENCE_S: Final = 5.0  # seconds to wait after each signal. Gazebo takes 2.2 s from SIGINT to its end
_GRACE_S: Final = 5.0
_KILL_S: Final = 2.0


class KeptTree:
    """A running command, its descendants, and the keeper that ends them all.

    Args:
        log: file of the command's standard error; its standard output is a pipe, ``child.process.stdout``.
        environment: added to this process's environment as filtered by `pass_on`.
        patience_s: time to wait after each of SIGINT, SIGTERM and SIGKILL.
        holds: descriptors that the keeper holds open until everything has ended, such as that of a locked file.

    Attributes:
        child: the keeper; it ends when the command has.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str],
        patience_s: float = PATIENCE_S,
        holds: Sequence[int] = (),
    ) -> None:
        self._limit_s = (len(LADDER) + 1) * patience_s + _GRACE_S
        self._mark = secrets.token_hex(16)
        keeper = [*_BY_SHELL, sys.executable, "-m", "pytest_ldos.host.kept", self._mark, str(patience_s)]
        with opened_log(log) as sink:
            process = subprocess.Popen(
                [*keeper, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                encoding="utf-8",
                errors="replace",
                env={**pass_on({**os.environ, **environment}), **owned_by_us()},
                process_group=0,
                pass_fds=holds,
            )
        self.child = Child(name, process, log)

    def pids(self) -> list[int]:
        return pids_with({MARK_VARIABLE: self._mark})

    def stop(self) -> None:
        """Ends all processes. May be called repeatedly. Raises `RuntimeError` if one survived even SIGKILL."""
        process = self.child.process
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(timeout=self._limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        deadline = time.monotonic() + _KILL_S
        while survivors := self.pids():  # a killed keeper left them
            if time.monotonic() > deadline:
                raise RuntimeError(f"processes {survivors} survived SIGKILL")
            for pid in survivors:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(_POLL_S)
        process.stdout.close()


LONGEST_LINE: Final = 1 << 24  # largest length of a valid line in bytes
_POLL_FOR_ANSWER_S: Final = 0.05
_LAST_WORDS_S: Final = 0.5
_END_S: Final = 5.0
_MATCH_POLL_S: Final = 0.02
_PR_SET_TIMERSLACK: Final = 29

Read = TypeVar("Read")


class ChildFailed(LdosError):
    """A process ended, did not answer in time, or gave an invalid answer."""


class NotAnsweredYet(ChildFailed):
    """The process did not answer in time, but still runs."""


class AnsweringChild:
    """A process started with pipes; see `ProcessGroup.start`."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._read, name=f"answers of {child.name}", daemon=True).start()

    def _read(self) -> None:
        """Reads bytes, so that `answer` can report undecodable ones."""
        stream = cast("BufferedReader", cast("TextIOWrapper", self.child.process.stdout).buffer)
        try:
            while line := stream.readline(LONGEST_LINE):
                self._lines.put(line)
        except ValueError:  # closed by `close`
            return

    def ask(self, question: str, *, limit_s: float) -> Mapping[str, Any]:
        """Writes a question and returns the answer; raises `ChildFailed` if there is none, or no JSON object."""
        pipe = self.child.process.stdin
        assert pipe is not None
        try:
            pipe.write(f"{question}\n")
            pipe.flush()
        except OSError:
            raise self._failed() from None
        return self.answer(limit_s=limit_s)

    def answer(self, *, limit_s: float) -> Mapping[str, Any]:
        line = self._next_line(limit_s)
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            answer = quoted(line.decode("utf-8", errors="replace"))
            raise ChildFailed(f"{self.child.name} printed an invalid answer: {answer}")
        return answer

    def _next_line(self, limit_s: float) -> bytes:
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            try:
                return self._lines.get(timeout=_POLL_FOR_ANSWER_S)
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
        """Closes the pipes, so that the process ends by itself; otherwise its owner ends it."""
        pipe = self.child.process.stdin
        assert pipe is not None
        try:
            pipe.close()
        except BrokenPipeError:
            return

    def await_end(self) -> None:
        """Waits for a limited time until the process has ended by itself."""
        comes_true(lambda: self.child.exit_code is not None, limit_s=_END_S)


def given_settings() -> dict[str, Any]:
    """Returns the JSON object that is the only argument of a measuring program, and makes its sleeps precise."""
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    settings: dict[str, Any] = json.loads(sys.argv[1])
    return settings


def answer_lines(answer: Callable[[str], Mapping[str, Any]], *, is_matched: Callable[[], bool], match_s: float) -> None:
    """Prints answers for an `AnsweringChild`: first if its peers have ``matched`` in time, then one to each line."""
    has_matched = comes_true(is_matched, limit_s=match_s, poll_s=_MATCH_POLL_S)
    say({"matched": has_matched})
    for line in sys.stdin if has_matched else ():
        say(answer(line))


def say(answer: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def whole(answer: Mapping[str, Any], key: str, *, least: int = 0) -> int:
    """Returns an integer of an answer; raises `ChildFailed` if it is missing, no integer, or below `least`."""
    value = answer.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ChildFailed(f"an answer has {key} {value!r}, which is no whole number from {least} on")
    return value


def summary_of(error: LdosError) -> str:
    """Returns the error in one line, for the failure of a round."""
    last = error.details.strip().splitlines()[-1:]
    return ": ".join([error.message, *last])


def attempt(action: Callable[[], Read]) -> Read | str:
    """Returns the action's result, or the reason if a process failed."""
    try:
        return action()
    except ChildFailed as error:
        return summary_of(error)


if __name__ == "__main__":
    sys.exit(main())
