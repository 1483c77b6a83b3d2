"""What watching left, as files: folded stacks of each start, what draws them, the table of system calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.campaign.watched_switches import describe_switches
from pytest_ldos.campaign.watching import Watching
from pytest_ldos.errors import LdosError
from pytest_ldos.profiles.difference import Difference, compare_profiles
from pytest_ldos.profiles.folded import FoldedStacks, render_folded
from pytest_ldos.profiles.speedscope import render_speedscope
from pytest_ldos.profiles.syscalls import render_syscalls
from pytest_ldos.trial.artifacts import write_atomically

FOLDER: Final = "profile"
FOLDED: Final = ".folded"
FLAME_FILE: Final = "flame.svg"
DIFFERENCE_FILE: Final = "difference.svg"
SPEEDSCOPE_FILE: Final = "profile.speedscope.json"
SYSCALLS_FILE: Final = "syscalls.txt"


@dataclass(frozen=True)
class Drawings:
    """How profiles are drawn as SVG.

    Attributes:
        flame: of samples, a title and notes.
        difference: of two profiles, and a title.
    """

    flame: Callable[[FoldedStacks, str, Sequence[str]], str]
    difference: Callable[[Difference, str], str]


def write_watched(watching: Watching, folder: Path, drawings: Drawings, *, title: str) -> Iterator[str]:
    """Writes what was seen of one version; yields notes for its report: what could not be seen, and where all lies.

    Args:
        folder: gets the files.
    """
    yield from watching.notes
    if watching.profiles:
        yield from _write_profile(watching, folder, drawings, title)
    if watching.syscalls:
        write_atomically(folder / SYSCALLS_FILE, render_syscalls(watching.syscalls))
        yield f"system calls: {folder / SYSCALLS_FILE}"
    if described := describe_switches(watching.switches):
        yield f"{described}{' (under strace)' if watching.syscalls else ''}"


def _write_profile(watching: Watching, folder: Path, drawings: Drawings, title: str) -> Iterator[str]:
    for number, profile in enumerate(watching.profiles, 1):
        write_atomically(folder / f"start-{number}{FOLDED}", render_folded(profile))
    whole = watching.profile
    write_atomically(folder / SPEEDSCOPE_FILE, render_speedscope(whole, title))
    yield f"profile of {whole.samples} samples ({watching.tools}): {folder}"
    yield from _drawn(folder / FLAME_FILE, lambda: drawings.flame(whole, title, [watching.tools]))


def write_watched_difference(
    base: Watching, head: Watching, folder: Path, drawings: Drawings, *, title: str
) -> Iterator[str]:
    """Writes how two versions differ; yields notes for the report."""
    if not (base.profiles and head.profiles):
        return
    difference = compare_profiles(base.profiles, head.profiles)
    file = folder / DIFFERENCE_FILE
    yield f"profiles held against each other, {len(difference.certain())} frames changed for certain: {file}"
    yield from _drawn(file, lambda: drawings.difference(difference, title))


def _drawn(file: Path, render: Callable[[], str]) -> Iterator[str]:
    """Writes a drawing; says what it lacks."""
    try:
        write_atomically(file, render())
    except LdosError as error:
        yield f"{file.name} is not there: {error.summary}"
