"""``ldos history import``: saved runs, of this machine or as they were downloaded from many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.cli.history_selection import Directory, open_store
from pytest_ldos.cli.paths import LATEST, find_trials, metric_names, sources_here
from pytest_ldos.cli.say import say
from pytest_ldos.judge.baseline.history.rows import Version, build_rows
from pytest_ldos.judge.baseline.history.store import HistoryStore
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.judging import verdict_alone
from pytest_ldos.judge.kept import read_judgement
from pytest_ldos.measure.trial.artifacts import BASE, TRIALS_FILE, ScenarioFolder, read_trials
from pytest_ldos.measure.trial.record import TrialSet

Runs = Annotated[
    list[str],
    typer.Argument(help="Run folders, scenario folders or files of trials; folders that hold many; or 'latest'."),
]


@dataclass(frozen=True)
class _Saved:
    """A set of trials as it lies on disk.

    Attributes:
        verdict: that the run reached; empty if it kept none.
    """

    run: str
    version: Version
    trials: TrialSet
    verdict: str = ""


def import_runs(runs: Runs, directory: Directory = None) -> None:
    """Add saved runs, of any machine.

    What is there already stays as it is. A file that cannot be read keeps no other from being added.

    Exit code: 2 where there was one.
    """
    store = open_store(directory, must_exist=False)
    store.require_writable()
    saved, unreadable = _read_all(file for name in runs for file in _find(name))
    own = metric_names(each.trials for each in saved)
    policy = Policy.configured(sources_here().toml.gate, scenarios=1, own=own)
    added = sum(_add(each, store, policy) for each in saved)
    if saved:
        say(f"{added} of {len(saved)} added to {store.directory}{_describe_others(saved, added)}")
    _refuse(unreadable)


def _find(name: str) -> list[Path]:
    """As a run, or however deep below a folder; the base of a session comes with its head."""
    place = Path(name)
    if name != LATEST and place.is_dir():
        found = [file for file in sorted(place.rglob(TRIALS_FILE)) if not _is_of_base(file)]
        if found:
            return found
    return find_trials(name)


def _is_of_base(file: Path) -> bool:
    return file.parent.name == BASE and (file.parents[1] / TRIALS_FILE).is_file()


def _read_all(files: Iterable[Path]) -> tuple[list[_Saved], list[RecordUnreadable]]:
    saved: list[_Saved] = []
    unreadable: list[RecordUnreadable] = []
    for file in dict.fromkeys(files):
        try:
            saved += _saved_with(file)
        except RecordUnreadable as error:
            unreadable.append(error)
    return saved, unreadable


def _refuse(unreadable: list[RecordUnreadable]) -> None:
    """Raises the first, behind the messages of the others."""
    for error in unreadable[1:]:
        say(f"ldos: {error.message}", err=True)
    if unreadable:
        raise unreadable[0]


def _add(saved: _Saved, store: HistoryStore, policy: Policy) -> bool:
    """Adds saved trials to the history; True if they are new and have a place there (see `rows.why_left_out`)."""
    if not saved.trials.trials:
        return False
    verdict = saved.verdict or verdict_alone(saved.trials, policy)
    rows = build_rows(saved.trials, run=saved.run, branch="", verdict=verdict, version=saved.version)
    return not rows.is_empty() and store.append(rows)


def _describe_others(saved: Sequence[_Saved], added: int) -> str:
    return "" if added == len(saved) else "; the others were there, are empty, invalid or were watched"


def _saved_with(file: Path) -> Iterator[_Saved]:
    """The trials of a file, and those of the base that they took turns with."""
    trials = read_trials(file)
    version = _version_in(file, trials)
    run = _run_name(file, version)
    kept = read_judgement(ScenarioFolder(file.parent)) if file.name == TRIALS_FILE else None
    yield _Saved(run, version, trials, "" if kept is None else kept.verdict.value)
    base = file.parent / BASE / TRIALS_FILE
    if base.exists():
        yield _Saved(run, Version.BASE, read_trials(base))


def _version_in(file: Path, trials: TrialSet) -> Version:
    """The version that a file holds: that of the base lies in a folder of its own."""
    return Version.BASE if trials.session and file.absolute().parent.name == BASE else Version.HEAD


def _run_name(file: Path, version: Version) -> str:
    """The folder of the run that a file of trials belongs to, or the file where it lies alone."""
    place = file.absolute()
    scenario = place.parents[1 if version is Version.BASE else 0]
    return scenario.parent.name if place.name == TRIALS_FILE else place.stem
