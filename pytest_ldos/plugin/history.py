"""The history of a session: the trials that it judged, added where a history was asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.units import counted
from pytest_ldos.plugin.faults import refused_session
from pytest_ldos.plugin.run_record import Books

if TYPE_CHECKING:
    from pytest_ldos.judge.baseline.history.rows import Version
    from pytest_ldos.judge.baseline.history.store import HistoryStore
    from pytest_ldos.measure.trial.record import TrialSet

_SET: Final = "set of trials"
_SETS: Final = "sets of trials"


class HistoryWriter:
    """The history of one session; does nothing where none was asked for.

    Attributes:
        fault: the reason why it could not be written; empty if it could.
    """

    def __init__(self, books: Books) -> None:
        self._settings, self._record, self._ledger = books
        self._added = 0
        self._left_out: list[str] = []
        self.fault = ""

    @property
    def _directory(self) -> Path | None:
        """The folder of the history; ``None`` where no history was asked for."""
        given = self._settings.value("history")
        return None if given is None else self._settings.root / given

    def require_writable(self) -> None:
        """Refuses the session before anything is measured if the history cannot be written."""
        if self._directory is None:
            return
        from pytest_ldos.judge.baseline.history.store import HistoryStore

        with refused_session():
            HistoryStore(self._directory).require_writable()

    def write(self) -> None:
        """Adds judged trials, and the base's where versions were interleaved; a run's own record always stays."""
        if self._directory is None or not any(run.judged or run.interleaved for run in self._record.runs):
            return
        from pytest_ldos.judge.baseline.history.branch import branch_of
        from pytest_ldos.judge.baseline.history.rows import Version
        from pytest_ldos.judge.baseline.history.store import HistoryStore
        from pytest_ldos.judge.judging import verdict_alone

        store = HistoryStore(self._directory)
        try:
            branch = "" if self._settings.value("head") else branch_of(self._settings.root)
            for run in self._record.runs:
                name = run.folder.path.parent.name
                for trials, result in run.judged:
                    verdict = result.verdict.value
                    self._add(store, trials, run=name, branch=branch, verdict=verdict, version=Version.HEAD)
                for base in (each.base for each in run.interleaved):
                    alone = verdict_alone(base, self._ledger.policy)
                    self._add(store, base, run=name, branch="", verdict=alone, version=Version.BASE)
        except Exception as error:  # noqa: BLE001 - whatever it is, the run's own record can be added later
            self.fault = str(error) if isinstance(error, LdosError | OSError) else f"{type(error).__name__}: {error}"

    def _add(
        self, store: HistoryStore, trials: TrialSet, *, run: str, branch: str, verdict: str, version: Version
    ) -> None:
        from pytest_ldos.judge.baseline.history.rows import build_rows, why_left_out

        rows = build_rows(trials, run=run, branch=branch, verdict=verdict, version=version)
        if rows.is_empty():
            self._left_out.append(why_left_out(trials, verdict) or "empty")
        else:
            self._added += store.append(rows)

    def summary(self) -> Iterator[str]:
        """Lines on what was added, left out, or could not be written."""
        for reason, count in Counter(self._left_out).items():
            yield f"history: {counted(count, _SET, _SETS)} not added: {reason}"
        if self._added:
            yield f"history: {counted(self._added, _SET, _SETS)} added; ldos history --dir {self._directory}"
        if self.fault:
            yield f"history: not written: {self.fault}"
            yield f"  → add this run later: ldos history import {self._record.folder} --dir {self._directory}"
