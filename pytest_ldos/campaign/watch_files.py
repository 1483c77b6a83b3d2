"""What watching left, as files: folded stacks of each start, what draws them, the table of system calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.campaign.watching import Watching, describe_switches
from pytest_ldos.errors import LdosError
from pytest_ldos.profiles.difference import Difference, compare_profiles
from pytest_ldos.profiles.folded import FoldedStacks, render_folded
from pytest_ldos.profiles.syscalls import render_syscalls
from pytest_ldos.trial.artifacts import write_atomically

FOLDER: Final = "profile"
SYSCALLS_FILE: Final = "syscalls.txt"


@dataclass(frozen=True)
class Renderers:
    """How profiles are drawn.

    Attributes:
        profile: from samples, a title and notes to text, by the ending of the file.
        difference: likewise, of two profiles.
    """

    profile: Mapping[str, Callable[[FoldedStacks, str, Sequence[str]], str]]
    difference: Mapping[str, Callable[[Difference, str], str]]


def write_watched(watching: Watching, folder: Path, renderers: Renderers, *, title: str) -> Iterator[str]:
    """Writes what was seen of one version; yields notes for its report: what could not be seen, and where all lies.

    Args:
        folder: gets the files.
    """
    yield from watching.notes
    if watching.profiles:
        yield from _write_profile(watching, folder, renderers, title)
    if watching.syscalls:
        write_atomically(folder / SYSCALLS_FILE, render_syscalls(watching.syscalls))
        yield f"system calls: {folder / SYSCALLS_FILE}"
    if described := describe_switches(watching.seen):
        beside = " (under strace)" if watching.syscalls else ""
        yield f"{described}{beside}"


def _write_profile(watching: Watching, folder: Path, renderers: Renderers, title: str) -> Iterator[str]:
    for number, profile in enumerate(watching.profiles, 1):
        write_atomically(folder / f"start-{number}.folded", render_folded(profile))
    whole = watching.profile
    yield f"profile of {whole.samples} samples ({watching.tools}): {folder}"
    for ending, render in renderers.profile.items():
        yield from _written(folder / f"profile{ending}", lambda render=render: render(whole, title, [watching.tools]))


def write_watched_difference(
    base: Watching, head: Watching, folder: Path, renderers: Renderers, *, title: str
) -> Iterator[str]:
    """Writes how two versions differ; yields notes for the report."""
    if not (base.profiles and head.profiles):
        return
    difference = compare_profiles(base.profiles, head.profiles)
    for ending, render in renderers.difference.items():
        file = folder / f"difference{ending}"
        yield from _written(file, lambda render=render: render(difference, title))
        changed = difference.certain()
        yield f"profiles held against each other ({len(changed)} frames changed for certain): {file}"


def _written(file: Path, render: Callable[[], str]) -> Iterator[str]:
    """Writes a drawing; what it lacks is said."""
    try:
        write_atomically(file, render())
    except LdosError as error:
        yield f"{file.name} is not there: {error.summary}"
