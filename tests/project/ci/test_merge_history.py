"""``.ci/results/merge_history.py``: what machines measured joins one history, once, and the history stays small."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from pytest_ldos.base.files import write_atomically
from pytest_ldos.judge.baseline.history import HistoryStore
from pytest_ldos.judge.baseline.trend import Pin, read_pin, write_pin
from pytest_ldos.measure.trial.artifacts import encode_trials
from pytest_ldos.measure.trial.record import TrialSet
from tests.builders.ci_rooms import leave_own
from tests.builders.trials import FINGERPRINT, noisy_set
from tests.project.ci.conftest import Done

SHA = "1f" * 20
BASE = "2e" * 20
OTHER = dataclasses.replace(FINGERPRINT, cpu_model="Other CPU", hostname="other")
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def measured(seed: int = 1, **changes) -> TrialSet:
    return noisy_set(seed, **{"commit": SHA[:12], "n": 4, **changes})


def leave(received: Path, trials: TrialSet, *, label: str = "ldos-lab", run: str = "run-1", base: bool = False) -> Path:
    """Writes the artifact of a machine."""
    leave_own(received, "trials")
    folder = received / f"trials-{label}" / run / trials.scenario
    file = (folder / "base" if base else folder) / "trials.json"
    write_atomically(file, encode_trials(trials))
    return file


@pytest.fixture
def received(tmp_path) -> Path:
    return tmp_path / "received"


@pytest.fixture
def history(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "history" / "rows").mkdir(parents=True)
    return tmp_path / "history"


@pytest.fixture
def merge(module_of, received, history, monkeypatch, capsys):
    program = module_of("merge_history")

    def run(commit: str = SHA) -> Done:
        monkeypatch.setattr(sys, "argv", ["merge_history", str(received), str(history), "--commit", commit])
        try:
            status = program.main()
        except SystemExit as ended:
            status = ended.code
        return Done(status, *capsys.readouterr())

    return run


def rows(history: Path) -> pl.DataFrame:
    return HistoryStore(history / "rows").read().table


def files(history: Path) -> list[str]:
    return sorted(file.name for file in (history / "rows").rglob("*") if file.is_file())


def test_all_classes_join_one_history(merge, received, history):
    leave(received, measured(), label="ldos-lab-a")
    leave(received, measured(2, name="cpu_load"), label="ldos-lab-a")
    leave(received, measured(3, fingerprint=OTHER), label="ldos-lab-b")
    done = merge()
    assert (done.returncode, done.stderr) == (0, "")
    found = rows(history).select("host_class", "scenario", "commit").unique()
    assert found.height == 3
    assert {*found["commit"]} == {SHA[:12]}
    assert files(history) == ["merged-runs.parquet"] * 3


def test_interleaved_base_is_added(merge, received, history):
    leave(received, measured(session="s"))
    leave(received, measured(2, session="s", commit=BASE[:12]), base=True)
    assert merge().returncode == 0
    assert {*rows(history).select("version", "commit").unique().iter_rows()} == {
        ("head", SHA[:12]),
        ("base", BASE[:12]),
    }


def test_a_second_run_adds_to_the_first_and_the_same_adds_nothing(merge, received, history):
    leave(received, measured())
    merge()
    first = rows(history)
    leave(received, measured(2, started_at="2026-01-02T00:00:00+00:00"), run="run-2")
    for _ in range(2):
        assert merge().returncode == 0
        assert rows(history).height == 2 * first.height
    assert files(history) == ["merged-runs.parquet"]


def test_newest_and_pinned_runs_are_kept(module_of, merge, received, history):
    for number in range(6):
        moment = (BEGIN + timedelta(days=number)).isoformat()
        leave(received, measured(number, started_at=moment), run=f"run-{number}")
    merge()
    (folder,) = {file.parent for file in (history / "rows").rglob("*.parquet")}
    oldest = rows(history).sort("started_at")["trials"][0]
    write_pin(folder, Pin(commit="", trials=oldest, name="run-0"))
    module_of("merge_history").compact(history / "rows", most_runs=2, largest=10**9)
    kept = rows(history).group_by("trials").agg(pl.col("started_at").first()).sort("started_at")
    assert [(moment - BEGIN).days for moment in kept["started_at"]] == [0, 4, 5]
    pin = read_pin(folder)
    assert pin is not None
    assert pin.trials == oldest
    assert files(history) == ["merged-runs.parquet", "pin.json"]


def test_the_size_is_bounded(module_of, merge, received, history):
    """A series of as many long runs as are kept stays below what may be written, 64 MiB, with room for others."""
    most = module_of("merge_history").MOST_RUNS
    for number in range(4):
        moment = (BEGIN + timedelta(days=number)).isoformat()
        leave(received, measured(number, n=30, started_at=moment), run=f"run-{number}")
    merge()
    size = sum(file.stat().st_size for file in (history / "rows").rglob("*.parquet"))
    assert size / 4 * most * 16 < module_of("history").LARGEST


def test_fewer_runs_are_kept_if_space_is_short(module_of, merge, received, history):
    for number in range(8):
        moment = (BEGIN + timedelta(days=number)).isoformat()
        leave(received, measured(number, started_at=moment), run=f"run-{number}")
        leave(received, measured(number, started_at=moment, name="cpu_load"), run=f"run-{number}")
    merge()
    whole = sum(file.stat().st_size for file in (history / "rows").rglob("*.parquet"))
    module_of("merge_history").compact(history / "rows", most_runs=8, largest=whole - 1)
    assert sum(file.stat().st_size for file in (history / "rows").rglob("*.parquet")) < whole
    for _, series in rows(history).group_by("scenario"):
        assert {(moment - BEGIN).days for moment in series["started_at"]} == {4, 5, 6, 7}


def test_merged_history_is_accepted_by_the_next_step(merge, received, history, run_program, github):
    """From the machines' files to the branch, and again."""
    where = ("--repository", "arm-makers/arm")
    for number in (1, 2):
        leave(received, measured(number, started_at=f"2026-01-0{number}T00:00:00+00:00"), run=f"run-{number}")
        place = history.with_name(f"history-{number}")
        assert run_program("fetch-history", place, *where).returncode == 0
        history.joinpath("rows").rmdir() if number == 1 else None
        if number == 1:
            history.rmdir()
        else:
            history.rename(history.with_name("before"))
        place.rename(history)
        assert merge().returncode == 0
        assert run_program("keep-history", history, *where).returncode == 0
    (path,) = github.git.files("ldos-history")
    assert path.endswith("/baseline/merged-runs.parquet")
    assert rows(history)["trials"].n_unique() == 2


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"commit": BASE[:12]}, "was not measured for"),
        ({"commit": SHA[:12] + "+"}, "was not measured for"),
        ({"started_at": "2126-01-01T00:00:00+00:00"}, "was measured in the future"),
        ({"started_at": "x"}, "began at no moment"),
        ({"started_at": "0001-01-01T00:00:00+23:59"}, "began at no moment"),
    ],
)
def test_unsuitable_trials_are_refused(merge, received, history, changes, reason):
    leave(received, measured())
    leave(received, measured(2, name="cpu_load", **changes))
    done = merge()
    assert done.returncode == 1
    assert reason in done.stderr
    assert files(history) == []


def test_base_without_a_commit(merge, received, history):
    leave(received, measured())
    leave(received, measured(2, commit="topic"), base=True)
    assert "was not measured for a commit" in merge().stderr
    assert files(history) == []


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"[" * 100_000, b"{}", b'{"kind": "pytest-ldos trials", "schema": 5}']
)
def test_invalid_records_are_refused(merge, received, history, content):
    leave(received, measured()).write_bytes(content)
    done = merge()
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert files(history) == []


@pytest.mark.parametrize(
    "path",
    [
        "x.json",
        "ldos-lab/run-1/baseline/trials.json",
        "trials-ldos-lab/run-1/trials.json",
        "trials-ldos-lab/run-1/baseline/trace/metadata",
        "trials-ldos-lab/trials-ldos-lab/run-1/baseline/trials.json",
        "trials-lab/a/b/trials.json",
        "trials-none/a/b/trials.json",
        "result-ldos-lab/a/b/trials.json",
        "trials-ldos-lab/.a/b/trials.json",
    ],
)
def test_files_that_are_no_records(merge, received, history, path):
    leave(received, measured())
    write_atomically(received / path, "{}")
    assert "belongs to nothing that is taken" in merge().stderr
    assert files(history) == []


def test_text_of_a_record_is_no_workflow_command(merge, received):
    file = leave(received, measured())
    document = json.loads(file.read_text("utf-8"))
    document["metrics"][0]["better"] = "\n::error::x##[error]x"
    file.write_text(json.dumps(document), "utf-8")
    done = merge()
    assert done.returncode == 1
    assert "better" in done.stderr
    assert "\n::" not in done.stderr
    assert "##[" not in done.stderr


@pytest.mark.parametrize("name", ["../../../evil", "$(touch owned)", "a/b", "\n::error::x", "é"])
def test_hostile_names_stay_below_the_history(merge, received, history, name, tmp_path):
    """The result can be stored, and has no files elsewhere."""
    file = leave(received, measured())
    document = json.loads(file.read_text("utf-8"))
    document["spec"]["name"] = name
    document["fingerprint"]["cpu_model"] = name
    file.write_text(json.dumps(document), "utf-8")
    done = merge()
    assert done.returncode in {0, 1}
    assert "\n::" not in done.stdout + done.stderr
    assert {each.name for each in tmp_path.iterdir()} <= {"history", "received"}
    assert all(each.name == "merged-runs.parquet" for each in (history / "rows").rglob("*") if each.is_file())


@pytest.mark.parametrize(
    "kind", ["cut", "no Parquet", "other columns", "other types", "of another version", "of something else"]
)
def test_damaged_history_is_not_overwritten(merge, received, history, kind):
    """Whoever can push can write to its branch."""
    leave(received, measured())
    merge()
    (file,) = (history / "rows").rglob("*.parquet")
    whole, table = file.read_bytes(), pl.read_parquet(file)
    metadata = {"pytest-ldos history": "1", "pytest-ldos trial sets": ""}
    if kind == "cut":
        file.write_bytes(whole[: len(whole) // 2] + b"\0" * (len(whole) - len(whole) // 2))
    elif kind == "no Parquet":
        file.write_bytes(b"PAR1PAR1")
    elif kind == "other columns":
        table.drop("metric").write_parquet(file, metadata=metadata)
    elif kind == "other types":
        table.with_columns(pl.col("value").cast(pl.String)).write_parquet(file, metadata=metadata)
    elif kind == "of another version":
        table.write_parquet(file, metadata={**metadata, "pytest-ldos history": "99"})
    else:
        table.write_parquet(file)
    spoilt = file.read_bytes()
    leave(received, measured(2, started_at="2026-01-02T00:00:00+00:00"), run="run-2")
    done = merge()
    assert done.returncode == 1
    assert str(file.relative_to(history.parent)) in done.stderr
    assert file.read_bytes() == spoilt


def test_nothing_was_measured(merge, received, history):
    """No folder, none of a machine, and one artifact alone: without a folder of its name it could be any machine's."""
    nothing = "merge_history: no machine left an artifact trials-LABEL\n"
    assert merge().stderr == nothing
    leave_own(received, "trials")
    assert merge().stderr == nothing
    leave(received, measured())
    shutil.rmtree(received / "trials-none")
    assert merge().stderr == nothing
    assert files(history) == []
