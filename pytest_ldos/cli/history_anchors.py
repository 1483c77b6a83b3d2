"""``ldos history pin | unpin``."""

from __future__ import annotations

from typing import Annotated, Any

import polars as pl
import typer

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.nearest import suggest
from pytest_ldos.cli.history_selection import Directory, HostClass, Scenario, Stack, Wanted, describe_runs, open_store
from pytest_ldos.cli.say import say
from pytest_ldos.host.checkout import is_changed
from pytest_ldos.judge.baseline.history.anchors import Pin, remove_pin, write_pin
from pytest_ldos.judge.baseline.history.rows import Version
from pytest_ldos.judge.baseline.key import KEY_COLUMNS, BaselineKey


def pin(
    name: Annotated[str, typer.Argument(metavar="COMMIT|RUN", help="A commit, or the folder of a run (its head).")],
    scenario: Scenario = "",
    host_class: HostClass = "",
    stack: Stack = "",
    directory: Directory = None,
) -> None:
    """Measure all later commits by this one."""
    store = open_store(directory)
    runs = describe_runs(store, Wanted(scenario, host_class, stack))
    chosen = _find_pin(runs, name)
    for row in _series_of(runs, chosen):
        of_series = chosen if chosen.commit else Pin("", str(row["trials"]), chosen.name)
        say(f"pinned: {write_pin(store.folder(BaselineKey.of_row(row)), of_series)} ({of_series.name})")


def unpin(scenario: Scenario = "", host_class: HostClass = "", stack: Stack = "", directory: Directory = None) -> None:
    """Forget what is pinned."""
    store = open_store(directory)
    runs = describe_runs(store, Wanted(scenario, host_class, stack))
    folders = sorted({store.folder(BaselineKey.of_row(row)) for row in runs.to_dicts()})
    removed = [folder for folder in folders if remove_pin(folder)]
    if not removed:
        raise ConfigurationError("nothing is pinned there", remedy="pin something: ldos history pin COMMIT")
    for folder in removed:
        say(f"unpinned: {folder}")


def _series_of(runs: pl.DataFrame, chosen: Pin) -> list[dict[str, Any]]:
    """A set of trials of each series that has what was chosen.

    Raises:
        ConfigurationError: a run has several sets of one series, of which only one can be meant.
    """
    if chosen.commit:
        runs = runs.filter(pl.col("commit") == chosen.commit).unique(KEY_COLUMNS)
    elif chosen.trials in set(runs["trials"]):
        runs = runs.filter(pl.col("trials") == chosen.trials)
    else:
        runs = runs.filter(pl.col("run") == chosen.name, pl.col("version") == Version.HEAD.value)
    rows = runs.sort(*KEY_COLUMNS, "started_at", "trials").to_dicts()
    if len(rows) > runs.select(KEY_COLUMNS).n_unique():
        listed = (f"{row['trials']} ({row['scenario']}, {row['started_at']:%Y-%m-%d %H:%M:%S})" for row in rows)
        raise ConfigurationError(
            f"the run {chosen.name} measured a scenario more than once", remedy=f"pin one set: {', '.join(listed)}"
        )
    return rows


def _find_pin(runs: pl.DataFrame, name: str) -> Pin:
    """Finds the pin named by a commit's beginning, a run's name or the identity of a set of trials.

    Raises:
        ConfigurationError: nothing or several things are called so.
    """
    commits = {commit for commit in runs["commit"] if commit}
    names = set(runs.filter(pl.col("version") == Version.HEAD.value)["run"])
    if name in names or name in set(runs["trials"]):
        return Pin("", name, name)
    found = {commit for commit in commits if commit.startswith(name) or (name.startswith(commit) and len(commit) > 6)}
    found = {name} if name in found else found
    if len(found) > 1:
        raise ConfigurationError(f"several commits begin with '{name}'", remedy=f"name one: {', '.join(sorted(found))}")
    if not found and not commits:
        raise ConfigurationError(
            "no run of this history has a commit: they were made outside of git",
            remedy=f"pin a run: {', '.join(sorted(names)[-3:])}",
        )
    if not found:
        raise ConfigurationError(f"no commit or run is called '{name}'", remedy=suggest(name, {*commits, *names}))
    (commit,) = found
    if is_changed(commit):
        raise ConfigurationError(
            f"{commit} had uncommitted changes, which differ from run to run", remedy="pin one of its runs instead"
        )
    return Pin(commit, "", commit)
