"""System calls of processes: the table of ``strace -c``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from pytest_ldos.base.errors import ProfilingFailed
from pytest_ldos.base.text import one_line

_HEADINGS: Final = ("% time", "seconds", "usecs/call", "calls", "errors", "syscall")
_LARGEST: Final = 2**63
_REMEDY: Final = "see strace's log, and run the command by hand: strace -c -f -p PID"


@dataclass(frozen=True)
class SyscallCount:
    """One system call.

    Attributes:
        seconds: time in the kernel, as strace accounts for it.
        share: fraction of the total of such seconds, 0 to 1.
    """

    name: str
    calls: int
    errors: int
    seconds: float
    share: float


def parse_syscalls(text: str) -> tuple[SyscallCount, ...]:
    """Rows of the table, longest total time first; the total row is left out.

    Raises:
        ProfilingFailed: it is no such table, or a row of it is damaged.
    """
    lines = iter(text.splitlines())
    if not any(_is_heading(line) for line in lines):
        raise ProfilingFailed("strace wrote no table of system calls", remedy=_REMEDY)
    return _shared(_rows(lines))


def _is_heading(line: str) -> bool:
    return all(heading in line for heading in _HEADINGS)


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
    """Merges several tables into one."""
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
    """Rows in order, with their shares."""
    ordered = sorted(rows, key=lambda row: (-row[3], -row[1], row[0]))
    total = math.fsum(row[3] for row in ordered)
    return tuple(SyscallCount(*row, share=row[3] / total if total else 0.0) for row in ordered)


def render_syscalls(rows: tuple[SyscallCount, ...]) -> str:
    """Plain-text table."""
    heading = f"{'share':>7} {'seconds':>11} {'calls':>10} {'errors':>8}  system call\n"
    body = (
        f"{100 * each.share:6.2f}% {each.seconds:11.6f} {each.calls:10d} {each.errors:8d}  {each.name}\n"
        for each in rows
    )
    return heading + "".join(body)
