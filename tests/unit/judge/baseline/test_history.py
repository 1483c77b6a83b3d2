"""The store: nothing is lost, nothing counts twice, nothing foreign is touched."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from pytest_ldos.base.errors import ConfigurationError, NotWritten, RecordUnreadable
from pytest_ldos.base.series import Invalid, Missing
from pytest_ldos.judge.baseline import history as files
from pytest_ldos.judge.baseline import history as store
from pytest_ldos.judge.baseline.history import SCHEMA, HistoryStore, Version, build_rows, identify, write_file
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.measure.metrics.catalogue import METRICS
from tests.builders.history import add_run, run_of
from tests.builders.trials import TYPICAL, failed_trial, measured, trial, trial_set


@pytest.fixture
def history(tmp_path):
    return HistoryStore(tmp_path / "history")


def rows_of(trials, **changes):
    return build_rows(trials, **{"run": "r", "branch": "main", "verdict": "passed", **changes})


def test_watched_trials_are_not_added_to_a_history():
    assert not build_rows(run_of(1), run="r", branch="", verdict="passed").is_empty()
    assert build_rows(run_of(1, watched="perf at 99 Hz"), run="r", branch="", verdict="passed").is_empty()


def sets_in(history):
    return set(history.read().table["trials"])


def parquet_files(history):
    return sorted(path.name for path in history.directory.rglob("*.parquet") if not path.name.startswith("."))


# --- rows -------------------------------------------------------------------------------


def test_a_row_for_each_trial_and_metric():
    trials = run_of(0, n=4)
    table = rows_of(trials)
    assert dict(table.schema) == SCHEMA
    assert len(table) == 4 * len(METRICS)
    first = table.filter(metric="T1", trial=2).row(0, named=True)
    assert first["value"] == trials.trials[2].measurements["T1"].value
    assert (first["status"], first["unit"], first["better"], first["source"]) == ("measured", "ms", "lower", "markers")
    assert first["planned_duration_ms"] == pytest.approx(1920.0)
    assert first["started_at"].isoformat() == trials.started_at


def test_missing_values_have_reasons():
    broken = trial(1, TYPICAL)
    broken = dataclasses.replace(
        broken,
        measurements={
            **broken.measurements,
            "T3": measured("T3", Missing("no cycle")),
            "T1": measured("T1", Invalid("clocks")),
        },
    )
    table = rows_of(trial_set([trial(0, TYPICAL), broken, failed_trial(2)]))

    def about(index, metric):
        return table.filter(trial=index, metric=metric).select("status", "value", "reason").row(0)

    assert about(1, "T3") == ("missing", None, "no cycle")
    assert about(1, "T1") == ("invalid", None, "clocks")
    assert about(2, "T4") == (
        "censored",
        None,
        "the trial ended as planning_failed: no joints bring the tip to the goal",
    )
    assert about(2, "T5")[0] == "measured"


def test_characters_unfit_for_file_names_are_replaced(history):
    """Goals and messages come from other programs."""
    broken = trial(0, {**TYPICAL, "T3": Missing("no \ud800cycle")}, goal="up\ud800")
    history.append(rows_of(trial_set([broken, dataclasses.replace(failed_trial(1), message="\ud800\x1b[31m")])))
    table = history.read().table
    assert set(table.filter(trial=0)["goal"]) == {"up\\xd800"}
    assert table.filter(trial=0, metric="T3")["reason"].item() == "no \\xd800cycle"
    assert table.filter(trial=1, metric="T4")["reason"].item().endswith("\\xd800\\x1b[31m")


def test_identity_does_not_depend_on_the_file(history):
    trials = run_of(0)
    assert identify(trials) == identify(dataclasses.replace(trials, trace="elsewhere"))
    assert identify(trials) != identify(run_of(1))


@pytest.mark.parametrize("version", Version)
def test_caller_names_the_version(version):
    trials = run_of(0, n=2, session="s")
    assert set(rows_of(trials, version=version)["version"]) == {version.value}


# --- append and read --------------------------------------------------------------------


def test_added_runs_are_read(history):
    for number in range(3):
        add_run(history, number)
    table = history.read().table
    assert len(table) == 3 * 6 * len(METRICS)
    assert set(table["run"]) == {"run-000", "run-001", "run-002"}
    assert len(history.read(metrics=["T4"]).table) == 3 * 6


def test_the_same_run_twice_counts_once(history):
    rows = rows_of(run_of(0))
    assert history.append(rows)
    assert not history.append(rows_of(run_of(0), verdict="unjudged"))
    table = history.read().table
    assert len(table) == len(rows)
    assert set(table["verdict"]) == {"passed"}


def test_stacks_hosts_and_scenarios_have_separate_folders(history):
    add_run(history, 0)
    add_run(history, 1, name="msg_load")
    add_run(history, 2, stack_kind="ros2-gz")
    assert len({path.parent for path in history.directory.rglob("*.parquet")}) == 3


@pytest.mark.parametrize("name", ["../../up", "..", "."])
def test_names_cannot_leave_the_directory(history, name):
    add_run(history, 0, stack_kind=name, name=name)
    (file,) = history.directory.rglob("*.parquet")
    assert len(file.relative_to(history.directory).parts) == 4
    assert all(path.is_relative_to(history.directory) for path in history.directory.parent.rglob("*.parquet"))


ROOT = Path(__file__).parents[4]

ADD = """
import os, signal, sys
from pathlib import Path
from pytest_ldos.judge.baseline import history as store
from pytest_ldos.judge.baseline.history import HistoryStore
from tests.builders.history import add_run

directory, merge_from, first, last, die_at = sys.argv[1:]
store._MERGE_FROM = int(merge_from)
if die_at:
    setattr(Path, die_at, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
for number in range(int(first), int(last)):
    add_run(HistoryStore(Path(directory)), number, n=1)
"""


def adding(history, first, last, *, merge_from=128, die_at=""):
    """Another process that adds runs of one trial each; it may kill itself at its first call of a method of paths."""
    arguments = [str(history.directory), str(merge_from), str(first), str(last), die_at]
    return subprocess.Popen([sys.executable, "-c", ADD, *arguments], cwd=ROOT)


def test_many_processes_at_once_lose_nothing(history):
    """They merge each other's files meanwhile; neighbours add some of the same runs."""
    workers = [adding(history, 8 * number, 8 * number + 12, merge_from=4) for number in range(3)]
    assert [worker.wait(300) for worker in workers] == [0] * 3
    table = history.read().table
    assert sets_in(history) == {identify(run_of(number, n=1)) for number in range(28)}
    assert len(table) == 28 * len(METRICS)


def test_files_are_merged(history, monkeypatch):
    monkeypatch.setattr(store, "_MERGE_FROM", 5)
    for number in range(12):
        add_run(history, number)
    names = parquet_files(history)
    assert len(names) == 2 + 2
    assert sum(name.startswith("merged-") for name in names) == 2
    assert len(sets_in(history)) == 12
    assert not history.append(rows_of(run_of(0)))


def test_interrupted_merge_counts_nothing_twice(history, monkeypatch):
    """Killed after the merged file is there and before the others are gone."""
    monkeypatch.setattr(store, "_MERGE_FROM", 3)
    assert adding(history, 0, 3, merge_from=3, die_at="unlink").wait(60) == -signal.SIGKILL
    assert len(parquet_files(history)) == 4
    assert len(history.read().table) == 3 * len(METRICS)
    add_run(history, 3, n=1)
    assert len(parquet_files(history)) == 2
    assert len(history.read().table) == 4 * len(METRICS)


def test_run_killed_while_writing_leaves_no_readable_file(history):
    add_run(history, 0, n=1)
    assert adding(history, 1, 2, die_at="replace").wait(60) == -signal.SIGKILL
    assert len(sets_in(history)) == 1
    assert history.read().damaged == ()
    add_run(history, 1, n=1)
    assert len(sets_in(history)) == 2


def test_failed_write_leaves_nothing(history, monkeypatch):
    add_run(history, 0)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NotWritten, match="No space"):
        add_run(history, 1)
    assert [path.name for path in history.directory.rglob(".*.parquet*")] == []


def test_files_removed_while_reading_are_searched_again(history, monkeypatch):
    add_run(history, 0)
    real, calls = store.read_rows, []

    def merged_meanwhile(*arguments, **options):
        calls.append(1)
        if len(calls) == 1:
            raise FileNotFoundError
        return real(*arguments, **options)

    monkeypatch.setattr(store, "read_rows", merged_meanwhile)
    assert len(history.read().table) == 6 * len(METRICS)


def test_concurrent_merge_does_not_make_a_history_unwritable(history, monkeypatch):
    add_run(history, 0)
    add_run(history, 1)
    real, looked = store.inspect_file, []

    def merged_meanwhile(path):
        looked.append(path)
        if len(looked) == 1:
            path.unlink()
        return real(path)

    monkeypatch.setattr(store, "inspect_file", merged_meanwhile)
    history.require_writable()
    assert len(looked) == 2


# --- damage, other versions, what is no history --------------------------------------------


@pytest.mark.parametrize("damage", ["cut", "empty", "scratched"])
def test_a_damaged_file_is_named_and_the_others_are_read(history, damage):
    for number in range(3):
        add_run(history, number)
    path = sorted(history.directory.rglob("*.parquet"))[1]
    content = path.read_bytes()
    broken = {
        "cut": content[:-50],
        "empty": b"",
        "scratched": content[:4] + bytes(len(content) // 2) + content[4 + len(content) // 2 :],
    }
    path.write_bytes(broken[damage])
    read = history.read()
    assert len(set(read.table["trials"])) == 2
    (damaged,) = read.damaged
    assert damaged.path == path
    assert f"{path} is damaged and left out" in str(damaged)
    add_run(history, 9)
    assert path.read_bytes() == broken[damage]


def test_damaged_files_are_kept_by_a_merge(history, monkeypatch):
    monkeypatch.setattr(store, "_MERGE_FROM", 3)
    add_run(history, 0)
    (path,) = history.directory.rglob("*.parquet")
    path.write_bytes(b"PAR1")
    for number in range(1, 5):
        add_run(history, number)
    assert path.exists()
    assert len(sets_in(history)) == 4


@pytest.mark.parametrize("version", ["2", "0", "many"])
def test_another_schema_version_is_refused_and_kept(history, monkeypatch, version):
    add_run(history, 0)
    monkeypatch.setattr(files, "SCHEMA_VERSION", version)
    add_run_of_other_version(history)
    monkeypatch.undo()
    before = {path: path.read_bytes() for path in history.directory.rglob("*.parquet")}
    for refused in (history.read, history.require_writable, lambda: add_run(history, 2)):
        with pytest.raises(RecordUnreadable, match=f"schema version '{version}', this version .* writes 1") as caught:
            refused()
        assert "nothing was changed" in caught.value.remedy
    assert {path: path.read_bytes() for path in history.directory.rglob("*.parquet")} == before


def add_run_of_other_version(history):
    rows = rows_of(run_of(1))
    write_file(history.folder(BaselineKey.of_row(rows.row(0, named=True))) / "other.parquet", rows)


def test_foreign_parquet_is_refused(history):
    history.directory.mkdir()
    pl.DataFrame({"a": [1]}).write_parquet(history.directory / "sales.parquet")
    for refused in (history.read, history.require_writable):
        with pytest.raises(RecordUnreadable, match=r"sales\.parquet is not a history file"):
            refused()


def test_an_empty_history(history):
    with pytest.raises(ConfigurationError, match="there is no run in the history") as caught:
        history.require_existing()
    assert "--ldos-history" in caught.value.remedy
    history.require_writable()
    assert history.read().table.is_empty()


def test_a_file_in_place_of_the_directory(tmp_path):
    place = tmp_path / "history"
    place.write_text("")
    for refused in (HistoryStore(place).require_writable, HistoryStore(place).require_existing):
        with pytest.raises(ConfigurationError, match="is a file, not a directory"):
            refused()


@pytest.mark.parametrize("place", ["/proc/self", "/proc/ldos", "file/below"])
def test_a_directory_that_cannot_be_written(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be written") as caught:
        HistoryStore(tmp_path / place).require_writable()
    assert "LDOS_HISTORY" in caught.value.remedy


def test_write_check_leaves_nothing(history):
    history.require_writable()
    assert list(history.directory.iterdir()) == []
