"""``ldos history`` shows what was accepted."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from pytest_ldos.judge.baseline.accepted import FILE, append_accepted, digest_difference
from pytest_ldos.judge.baseline.history import HistoryStore
from tests.builders.accepted import accepted
from tests.builders.command_line import run_ldos
from tests.builders.history import add_run
from tests.builders.repository import Repository


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Repository:
    made = Repository.create(tmp_path / "arm")
    made.commit(planner_txt="fast\n")
    made.commit(planner_txt="slow\n")
    monkeypatch.chdir(made.path)
    monkeypatch.setenv("COLUMNS", "160")
    return made


def history(repository, *verdicts) -> HistoryStore:
    """Runs of both commits in their order, with these verdicts."""
    store = HistoryStore(repository.path / "history")
    names = [repository.git("rev-parse", "--short=12", name) for name in ("HEAD~1", "HEAD")]
    for number, (name, verdict) in enumerate(zip(names, verdicts, strict=True)):
        add_run(store, number, commit=name, verdict=verdict, factors={"T1": 1 + number, "T4": 1 + number})
    return store


def marks(metric) -> list[str]:
    ended = run_ldos("history", "--dir", "history", "--metric", metric, "--format", "csv")
    assert ended.returncode == 0, ended.stderr
    return [row["accepted"] for row in csv.DictReader(io.StringIO(ended.stdout))]


def test_history_shows_an_accepted_step_of_this_metric_alone(repository):
    history(repository, "passed", "accepted")
    commits = [repository.git("rev-parse", name) for name in ("HEAD~1", "HEAD")]
    append_accepted(repository.path, [accepted("T1", 1.0, difference=digest_difference(repository.path, *commits))])
    shown = "accepted: T1 up to +100.0 % (Ada, it checks collisions twice)"
    assert marks("T1") == ["", shown]
    assert marks("T4") == ["", ""]
    assert shown in " ".join(run_ldos("history", "--dir", "history", "--metric", "T1").stdout.split())


def test_history_of_a_damaged_file_is_shown_without_it(repository):
    history(repository, "passed", "accepted")
    Path(FILE).write_text("[")
    ended = run_ldos("history", "--dir", "history")
    assert ended.returncode == 0
    assert f"{FILE} cannot be read" in ended.stderr
