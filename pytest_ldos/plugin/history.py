"""Adds what a session judged to the history, where one was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ldos.errors import LdosError

if TYPE_CHECKING:
    from pytest_ldos.plugin.session import MeasuringSession


class HistoryWriter:
    """The history of one session; does nothing where none was asked for.

    Attributes:
        fault: why it could not be written at the end; empty where it could.
    """

    def __init__(self, session: MeasuringSession) -> None:
        self._session = session
        self._added = 0
        self.fault = ""

    @property
    def _directory(self) -> Path | None:
        """Below the root directory; ``None`` where no history was asked for."""
        given = self._session.value("history")
        return None if given is None else self._session.config.rootpath / given

    def require_writable(self) -> None:
        """Refuses the session before anything is measured that could then not be kept."""
        if self._directory is None:
            return
        from pytest_ldos.baseline.history.store import HistoryStore

        try:
            HistoryStore(self._directory).require_writable()
        except LdosError as error:
            raise pytest.UsageError(str(error)) from None

    def write(self) -> None:
        """Adds what was judged, and the base's trials where versions took turns; a run's own record always stays."""
        if self._directory is None or not any(run.judged or run.interleaved for run in self._session.runs):
            return
        from pytest_ldos.baseline.history.branch import branch_of
        from pytest_ldos.baseline.history.rows import Version, build_rows
        from pytest_ldos.baseline.history.store import HistoryStore
        from pytest_ldos.gate.unjudged import verdict_alone

        store = HistoryStore(self._directory)
        try:
            branch = branch_of(self._session.config.rootpath)
            for run in self._session.runs:
                name = run.folder.path.parent.name
                rows = [
                    build_rows(trials, run=name, branch=branch, verdict=verdict.value) for trials, verdict in run.judged
                ]
                for base in (each.base for each in run.interleaved):
                    alone = verdict_alone(base, self._session.policy)
                    rows.append(build_rows(base, run=name, branch="", verdict=alone, version=Version.BASE))
                self._added += sum(store.append(each) for each in rows if not each.is_empty())
        except Exception as error:  # noqa: BLE001 - whatever it is, the run's own record can be added later
            self.fault = str(error) if isinstance(error, LdosError | OSError) else f"{type(error).__name__}: {error}"

    def summary(self) -> Iterator[str]:
        """What became of it."""
        watched = sum(trials.watched != "" for run in self._session.runs for trials, _ in run.judged)
        if self._directory is not None and watched:
            yield f"history: {watched} sets of trials that were watched are not added"
        if self._added:
            yield f"history: {self._added} sets of trials added; ldos history --dir {self._directory}"
        if self.fault:
            yield f"history: not written: {self.fault}"
            yield f"  → add this run later: ldos history import {self._session.run_folder()} --dir {self._directory}"
