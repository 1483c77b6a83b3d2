"""Runs the profilers of ``--ldos-profile`` and ``--ldos-syscalls`` during trials or rounds of a study."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.studies import measure_watched
from pytest_ldos.campaign.watching import FOLDER, Watching, write_watched, write_watched_difference
from pytest_ldos.instruments.study import Study
from pytest_ldos.measure.trial.rig import Watch
from pytest_ldos.scenario.watching import WatchSpec
from pytest_ldos.show.report.flame.files import DRAWINGS


class TrialWatch:
    """Watches the versions of a scenario, and writes profiles below a folder."""

    def __init__(self, spec: WatchSpec, folder: Path, title: str) -> None:
        self._spec = spec
        self._folder = _unused(folder / FOLDER)
        self._title = title
        self._watched: dict[Role, Watching] = {}

    def of(self, role: Role) -> Watch | None:
        """The watch of a version; ``None`` without profilers."""
        if not self._spec.is_asked:
            return None
        if role not in self._watched:
            self._watched[role] = Watching(self._spec)
        return self._watched[role]

    def write(self) -> list[str]:
        """Writes the profiles; returns notes for the report."""
        return list(self._write())

    def _write(self) -> Iterator[str]:
        is_interleaved = Role.BASE in self._watched
        for role, watching in self._watched.items():
            folder = self._folder / role if is_interleaved else self._folder
            title = f"{self._title}, {role}" if is_interleaved else self._title
            yield from write_watched(watching, folder, DRAWINGS, title=title)
        if is_interleaved and Role.HEAD in self._watched:
            base, head = (self._watched[role] for role in (Role.BASE, Role.HEAD))
            title = f"{self._title}: base → head"
            yield from write_watched_difference(base, head, self._folder, DRAWINGS, title=title)


def _unused(folder: Path) -> Path:
    """The folder, with a number if trials of the same test already use it."""
    numbered = (folder.with_name(f"{folder.name}-{number}") for number in range(2, 10_000))
    return folder if not folder.exists() else next(each for each in numbered if not each.exists())


def measured_study(spec: WatchSpec, folder: Callable[[], Path], measure: Callable[[], Study]) -> Study:
    """Measures a study with the profilers in the settings.

    Args:
        folder: creates the folder of the profiles; called only with profilers.
    """
    return measure_watched(spec, folder(), DRAWINGS, measure) if spec.is_asked else measure()
