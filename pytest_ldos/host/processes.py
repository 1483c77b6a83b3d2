"""Child processes that end with their parent, with their names, output and exit status.

Children share the caller's session, hence its scheduler group (see `host.cpu`), so that a stressor competes with the
stack like processes of one terminal; on demand each child has its own session. Children die with their parent
(``setpriv --pdeathsig``), even if it is killed, and do not begin if it died before they requested that.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

import psutil

from pytest_ldos.base.files import opened_log
from pytest_ldos.host.cpu import read_setting
from pytest_ldos.host.fingerprint import pass_on

_CAUSES: Final[dict[int, str]] = {signal.SIGBUS: ", as where a file in memory has no room: is /dev/shm full?"}
"""Likely causes of signals, for messages."""


def describe_end(name: str, code: int) -> str:
    """``arm-1 ended with exit code 1``, or ``arm-1 was killed by SIGKILL`` for the negative number of a signal."""
    if code >= 0:
        return f"{name} ended with exit code {code}"
    try:
        killer = signal.Signals(-code).name
    except ValueError:  # most real-time signals have no name
        killer = f"signal {-code}"
    return f"{name} was killed by {killer}{_CAUSES.get(-code, '')}"


_LAST_LINES: Final = 15
_QUOTED: Final = 200
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")


def last_lines(log: Path) -> str:
    """The last lines of a log; empty if it cannot be read."""
    try:
        lines = log.read_text("utf-8", errors="replace").splitlines()[-_LAST_LINES:]
    except OSError:
        return ""
    return "\n".join(_COLOUR.sub("", line) for line in lines)


def quoted(line: str) -> str:
    """The beginning of a line, quoted for a message."""
    return repr(line.strip()[:_QUOTED])


def last_words(logs: Iterable[Path]) -> str:
    """The ends of all non-empty logs, each below its name."""
    ends = ((log.stem, last_lines(log)) for log in logs)
    return "\n".join(f"--- {name} ---\n{lines}" for name, lines in ends if lines)


OWNER_VARIABLE: Final = "PYTEST_LDOS_OWNER"
"""Environment variable with a process's owner: its pid, and its start in ticks since boot."""

_STATE, _BEGAN = 0, 19
"""Indices of fields of ``/proc/PID/stat`` after the name; see proc(5)."""

_ENDED: Final = frozenset({"Z", "X"})


def owned_by_us() -> Mapping[str, str]:
    """The environment variable that marks children of this process."""
    return {OWNER_VARIABLE: f"{os.getpid()} {_began(os.getpid())}"}


def living_owner(environment: Mapping[str, str]) -> int | None:
    """Pid of the owner in a process's environment; ``None`` if it has ended."""
    pid, _, began = environment.get(OWNER_VARIABLE, "").partition(" ")
    return int(pid) if pid.isascii() and pid.isdecimal() and began and _began(pid) == began else None


def _began(pid: int | str) -> str:
    """Start time of a process, which distinguishes reused pids; empty if it has ended."""
    fields = read_setting(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return "" if not fields or fields[_STATE] in _ENDED else fields[_BEGAN]


_DIE_WITH_PARENT: Final = ("setpriv", "--pdeathsig")
_UNLESS_ORPHANED: Final = ("sh", "-c", '[ "$PPID" = "$0" ] && exec "$@"')
"""Shell prefix, followed by the parent's pid: checks that the parent is still alive after ``setpriv``."""
_UNDISTURBED: Final = {"RUST_LOG": "off"}  # environment of a child with pipes: Zenoh would log to its standard output
_LADDER: Final = ((signal.SIGINT, 2.0), (signal.SIGTERM, 2.0), (signal.SIGKILL, 20.0))
_POLL_S: Final = 0.005
_NO_GROUP: Final = -1


def comes_true(condition: Callable[[], bool], *, limit_s: float, poll_s: float = _POLL_S) -> bool:
    """Waits for a condition; returns False if it is not met within the time limit."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(poll_s)
    return True


@dataclass
class Child:
    """A running child process; its log has its standard error (and its output, unless piped)."""

    name: str
    process: subprocess.Popen[str]
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def exit_code(self) -> int | None:
        return self.process.poll()

    def last_lines(self) -> str:
        return last_lines(self.log)

    def describe_end(self) -> str:
        """``simulator ended with exit code 1``, or the signal that killed it."""
        code = self.exit_code
        return f"{self.name} is running" if code is None else describe_end(self.name, code)


class ProcessGroup:
    """Children that end together.

    Args:
        prefix: command prefix of all children (must end in ``exec``).
        environment: added to this process's environment as filtered by `pass_on`.
        death_signal: signal that children get when this process dies; SIGINT allows them to clean up.
        log_directory: folder of a ``NAME.log`` per child.
        own_session: starts each child in its own session, hence its own scheduler group.
    """

    def __init__(
        self,
        *,
        log_directory: Path,
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        death_signal: signal.Signals = signal.SIGKILL,
        own_session: bool = False,
    ) -> None:
        self._death_signal = death_signal.name.removeprefix("SIG")
        self._prefix = tuple(prefix)
        self._environment = {**pass_on({**os.environ, **(environment or {})}), **owned_by_us()}
        self._log_directory = log_directory
        self._own_session = own_session
        self.children: list[Child] = []

    def start(self, name: str, command: Sequence[str], *, talk: bool = False, fresh_log: bool = False) -> Child:
        """Starts a child; with `talk`, its input and output are pipes, with `fresh_log` its earlier log is deleted."""
        log = self._log_directory / f"{name}.log"
        if fresh_log:
            log.unlink(missing_ok=True)
        # The pid of the first child names the group while that child exists.
        leader = self.children[0].pid if self.children and self.children[0].exit_code is None else 0
        bound_to_us = (*_DIE_WITH_PARENT, self._death_signal, "--", *_UNLESS_ORPHANED, str(os.getpid()))
        with opened_log(log) as sink:
            process = subprocess.Popen(
                [*bound_to_us, *self._prefix, *command],
                stdin=subprocess.PIPE if talk else subprocess.DEVNULL,
                stdout=subprocess.PIPE if talk else sink,
                stderr=sink,
                encoding="utf-8",
                errors="replace",
                env={**self._environment, **_UNDISTURBED} if talk else self._environment,
                process_group=None if self._own_session else leader,
                start_new_session=self._own_session,
            )
        child = Child(name, process, log)
        self.children.append(child)
        return child

    def ended(self) -> list[Child]:
        return [child for child in self.children if child.exit_code is not None]

    def describe_ended(self) -> str:
        """Names of the ended children, with their exit status; empty while all run."""
        return "; ".join(child.describe_end() for child in self.ended())

    def last_words(self) -> str:
        return last_words(child.log for child in self.children)

    def stop(self) -> None:
        """Ends all children and their descendants: SIGINT, SIGTERM, SIGKILL. Raises `RuntimeError` if one survived."""
        for number, patience_s in _LADDER:
            survivors = self.survivors()
            if not survivors:
                break
            for group in {_group_of(pid) for pid in survivors} - {_NO_GROUP}:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(group, number)
            # All processes of the machine are searched only when no child is left to wait for.
            comes_true(lambda: len(self.ended()) == len(self.children) and not self.survivors(), limit_s=patience_s)
        for child in self.children:
            for pipe in (child.process.stdin, child.process.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
            child.process.poll()
        if survivors := self.survivors():
            raise RuntimeError(f"processes {survivors} survived SIGKILL")

    def survivors(self) -> list[int]:
        """Running pids in the children's process groups; a child without its main thread runs until it is reaped."""
        children = {child.pid for child in self.children}
        found = [child.pid for child in self.children if child.exit_code is None]
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.status() != psutil.STATUS_ZOMBIE and process.pid not in children:
                    found += [process.pid] if _group_of(process.pid) in children else []
        return found


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return _NO_GROUP


_PYTHON: Final = re.compile(r"(?:python|pypy)[\d.]*[dt]*")
_WITH_VALUE: Final = re.compile(r"-[^-cmWX]*([cmWX])(.*)", re.DOTALL)
"""Python's combined options, of which the last takes the rest or the next argument."""


def process_names(pids: Iterable[int]) -> dict[int, str]:
    named = {}
    for pid in pids:
        try:
            named[pid] = name_of_command(psutil.Process(pid).cmdline()) or psutil.Process(pid).name()
        except psutil.Error:
            continue
    return named


def name_of_command(command: Sequence[str]) -> str:
    """``simulator`` of ``python -m robot.simulator``; empty if the command has no name."""
    if not command:
        return ""
    program = PurePosixPath(command[0]).name
    if not _PYTHON.fullmatch(program):
        return program
    return _of_python(iter(command[1:])) or program


def _of_python(arguments: Iterator[str]) -> str:
    for argument in arguments:
        if found := _WITH_VALUE.fullmatch(argument):
            option, value = found[1], found[2] or next(arguments, "")
            if option in "cm":
                return value.rpartition(".")[2] if option == "m" else ""
        elif argument == "--check-hash-based-pycs":
            next(arguments, "")
        elif argument == "--":
            return PurePosixPath(next(arguments, "")).name
        elif not argument.startswith("-"):
            return PurePosixPath(argument).name
        elif argument == "-":
            return ""
    return ""
