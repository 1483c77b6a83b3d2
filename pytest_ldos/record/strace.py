"""Counts system calls of running processes with ``strace -c``.

Each call stops its process twice, so that times measured with strace are not comparable with normal runs.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import ProfilingFailed
from pytest_ldos.base.text import one_line
from pytest_ldos.host.availability import Availability, find_programs, program_version
from pytest_ldos.host.counters import tracing_permitted
from pytest_ldos.host.cpu import read_setting
from pytest_ldos.host.processes import Child
from pytest_ldos.record.protocol import AttachedTool, clean_lines, probe

_HEADINGS: Final = ("% time", "seconds", "usecs/call", "calls", "errors", "syscall")
_LARGEST: Final = 2**63
_REMEDY: Final = "see strace's log, and run the command by hand: strace -c -f -p PID"


@dataclass(frozen=True)
class SyscallCount:
    """Counts of a system call; `seconds` in the kernel as reported by strace, `share` their fraction of the total."""

    name: str
    calls: int
    errors: int
    seconds: float
    share: float


def parse_syscalls(text: str) -> tuple[SyscallCount, ...]:
    """Rows of the table, longest total time first, without the total; raises `ProfilingFailed` if one is damaged."""
    lines = iter(text.splitlines())
    if not any(all(heading in line for heading in _HEADINGS) for line in lines):
        raise ProfilingFailed("strace wrote no table of system calls", remedy=_REMEDY)
    return _shared(_rows(lines))


def _rows(lines: Iterator[str]) -> Iterator[tuple[str, int, int, float]]:
    for line in lines:
        words = line.split()
        if not words or set(line) <= {"-", " "}:
            continue
        if words[-1] == "total":
            return
        try:
            yield _row(words)
        except ValueError:
            raise ProfilingFailed(
                f"strace wrote a row that makes no sense: {one_line(line)!r}", remedy=_REMEDY
            ) from None
    raise ProfilingFailed("strace's table ends before its total", remedy=_REMEDY)


def _row(words: list[str]) -> tuple[str, int, int, float]:
    """``% time``, seconds, µs per call, calls, errors (blank if there were none), name."""
    _, seconds, _, calls, *errors, name = words
    if len(errors) > 1:
        raise ValueError("too many columns")
    row = one_line(name), int(calls), int(errors[0]) if errors else 0, float(seconds)
    if not (0 <= row[1] < _LARGEST and 0 <= row[2] <= row[1] and 0 <= row[3] < math.inf):
        raise ValueError("numbers that cannot be")
    return row


def add_syscalls(tables: Iterable[tuple[SyscallCount, ...]]) -> tuple[SyscallCount, ...]:
    together: dict[str, list[SyscallCount]] = {}
    for table in tables:
        for each in table:
            together.setdefault(each.name, []).append(each)
    summed = [
        (name, sum(each.calls for each in rows), sum(each.errors for each in rows), math.fsum(e.seconds for e in rows))
        for name, rows in together.items()
    ]
    return _shared(summed)


def _shared(rows: Iterable[tuple[str, int, int, float]]) -> tuple[SyscallCount, ...]:
    ordered = sorted(rows, key=lambda row: (-row[3], -row[1], row[0]))
    total = math.fsum(row[3] for row in ordered)
    return tuple(SyscallCount(*row, share=row[3] / total if total else 0.0) for row in ordered)


def render_syscalls(rows: tuple[SyscallCount, ...]) -> str:
    heading = f"{'share':>7} {'seconds':>11} {'calls':>10} {'errors':>8}  system call\n"
    body = (
        f"{100 * each.share:6.2f}% {each.seconds:11.6f} {each.calls:10d} {each.errors:8d}  {each.name}\n"
        for each in rows
    )
    return heading + "".join(body)


_READY_S: Final = 15.0
_END_S: Final = 20.0
_POLL_S: Final = 0.01
_NOT_PERMITTED: Final = "let the container trace (docker run --cap-add=SYS_PTRACE), or run it outside"


def strace_available() -> Availability:
    """Checks that strace is installed and permitted, by tracing a short program."""
    programs = find_programs(("strace",), package="strace")
    permitted = tracing_permitted("strace") if programs.ok else programs
    if not permitted.ok:
        return permitted
    able = probe(["strace", "-c", "-o", os.devnull, "true"], by_hand="strace -c true")
    if able.ok or able.remedy:
        return able
    return Availability(False, f"strace may not trace here: {able.reason}", _NOT_PERMITTED)


class SyscallCounter(AttachedTool):
    """Counts system calls of processes, with their threads and descendants; `name` is tool and version."""

    def __init__(self, log_directory: Path) -> None:
        super().__init__(log_directory)
        self._table = Path()
        self.name = program_version("strace", "strace", "-V")

    def start(self, pids: Iterable[int]) -> None:
        """Starts counting; returns when all processes are traced, or raises `ProfilingFailed` with the reason."""
        wanted = list(pids)
        attached = [word for pid in wanted for word in ("-p", str(pid))]
        with self._starting("ldos-strace-") as folder:
            self._table = folder / "table"
            command = ["strace", "-c", "-f", "-o", str(self._table), *attached]
            self._child = self._group.start("strace", command, fresh_log=True)
            _await_attached(self._child, wanted)

    def stop(self) -> tuple[SyscallCount, ...]:
        """Stops counting and returns the calls; raises `ProfilingFailed` if strace failed or its table is invalid."""
        return self._finish(lambda: parse_syscalls(read_setting(self._table)), limit_s=_END_S)


def _await_attached(child: Child, wanted: Iterable[int]) -> None:
    """Waits until this child traces every thread, according to the kernel."""
    deadline = time.monotonic() + _READY_S
    while any(_tracers_of(pid) != {child.pid} for pid in wanted):
        if child.exit_code is not None or time.monotonic() > deadline:
            lines = [line for line in clean_lines(child.last_lines()) if "attached" not in line]
            reason = lines[-1] if lines else "no reason given"
            raise ProfilingFailed(f"strace could not attach: {reason}", remedy=f"see {child.log}")
        time.sleep(_POLL_S)


def _tracers_of(pid: int) -> set[int]:
    """Pids of the tracers of a process's threads, 0 for none; empty if the process is gone."""
    statuses = (read_setting(status) for status in Path(f"/proc/{pid}/task").glob("*/status"))
    found = (re.search(r"^TracerPid:\s*(\d+)", status, re.MULTILINE) for status in statuses)
    return {int(tracer.group(1)) for tracer in found if tracer is not None}
