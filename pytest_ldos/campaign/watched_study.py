"""Measures a study while its processes are watched, and adds the results of watching."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

from pytest_ldos.base.writable import writing
from pytest_ldos.campaign.watch_files import Drawings, write_watched
from pytest_ldos.campaign.watching import Watching
from pytest_ldos.instruments.study import Column, Study, Table
from pytest_ldos.record.profiles.syscalls import SyscallCount
from pytest_ldos.scenario.watching import WatchSpec

_COLUMNS = (
    Column(name="call", title="system call"),
    Column(name="calls"),
    Column(name="errors"),
    Column(name="time", unit="s"),
    Column(name="share", unit="%"),
)


def measure_watched(spec: WatchSpec, folder: Path, drawings: Drawings, measure: Callable[[], Study]) -> Study:
    """Measures a study; adds a table of system calls, and notes on where the profile is.

    Args:
        folder: receives the files, and logs of the tools.

    Raises:
        NotWritten, ConfigurationError: it cannot be made.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    watching = Watching(spec)
    with watching.beside_own(folder):
        study = measure()
    notes = write_watched(watching, folder, drawings, title=f"ldos {study.instrument}")
    return dataclasses.replace(
        study,
        notes=(*_warnings(watching), *study.notes, *notes),
        tables=(*study.tables, *_tables(watching)),
        watched=watching.tools,
        distortion=watching.distortion,
    )


def _warnings(watching: Watching) -> Iterator[str]:
    if watching.distortion:
        yield watching.distortion


def _tables(watching: Watching) -> Iterator[Table]:
    if watching.syscalls:
        yield syscall_table(watching.syscalls)


def syscall_table(counts: tuple[SyscallCount, ...]) -> Table:
    """Table of system calls, those that took longest first."""
    rows = tuple((each.name, each.calls, each.errors, each.seconds, 100 * each.share) for each in counts)
    return Table(name="system_calls", title="System calls, as strace counts them", columns=_COLUMNS, rows=rows)
