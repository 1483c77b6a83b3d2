"""Writes the results of watching: folded stacks of each start, drawings of them, and the table of system calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.writable import write_atomically
from pytest_ldos.campaign.watched_switches import describe_switches
from pytest_ldos.campaign.watching import Watching
from pytest_ldos.record.profiles.difference import Difference, compare_profiles
from pytest_ldos.record.profiles.folded import FoldedStacks, render_folded
from pytest_ldos.record.profiles.speedscope import render_speedscope
from pytest_ldos.record.profiles.syscalls import render_syscalls

FOLDER: Final = "profile"
FOLDED: Final = ".folded"
FLAME_FILE: Final = "flame.svg"
DIFFERENCE_FILE: Final = "difference.svg"
SPEEDSCOPE_FILE: Final = "profile.speedscope.json"
SYSCALLS_FILE: Final = "syscalls.txt"


@dataclass(frozen=True)
class Drawings:
    """Functions that draw profiles as SVG.

    Attributes:
        flame: given samples, a title and notes.
        difference: given the difference of two profiles, and a title.
    """

    flame: Callable[[FoldedStacks, str, Sequence[str]], str]
    difference: Callable[[Difference, str], str]


def write_watched(watching: Watching, folder: Path, drawings: Drawings, *, title: str) -> Iterator[str]:
    """Writes the results of watching one version; yields notes for its report: failures, and where the files are.

    Args:
        folder: receives the files.
    """
    yield from watching.notes
    if watching.profiles:
        yield from _write_profile(watching, folder, drawings, title)
    if watching.syscalls:
        yield f"system calls: {folder / SYSCALLS_FILE}"
        yield from _written(folder / SYSCALLS_FILE, lambda: render_syscalls(watching.syscalls))
    if described := describe_switches(watching.switches):
        yield f"{described}{' (under strace)' if watching.syscalls else ''}"


def _write_profile(watching: Watching, folder: Path, drawings: Drawings, title: str) -> Iterator[str]:
    whole = watching.profile
    yield f"profile of {whole.samples} samples ({watching.tools}): {folder}"
    for number, profile in enumerate(watching.profiles, 1):
        yield from _written(folder / f"start-{number}{FOLDED}", partial(render_folded, profile))
    yield from _written(folder / SPEEDSCOPE_FILE, lambda: render_speedscope(whole, title))
    yield from _written(folder / FLAME_FILE, lambda: drawings.flame(whole, title, [watching.tools]))


def write_watched_difference(
    base: Watching, head: Watching, folder: Path, drawings: Drawings, *, title: str
) -> Iterator[str]:
    """Writes the difference between the profiles of two versions; yields notes for the report."""
    if not (base.profiles and head.profiles):
        return
    difference = compare_profiles(base.profiles, head.profiles)
    file = folder / DIFFERENCE_FILE
    yield f"profiles compared: {len(difference.certain())} frames changed for certain, see {file}"
    yield from _written(file, lambda: drawings.difference(difference, title))


def _written(file: Path, render: Callable[[], str]) -> Iterator[str]:
    """Writes a file; yields a note if it cannot be written, so that the measurement is not lost with it."""
    try:
        write_atomically(file, render())
    except LdosError as error:
        yield f"{file.name} is not there: {error.message} → {error.remedy}"
