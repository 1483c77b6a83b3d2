"""One history of many machines: ``ldos history import`` of what was downloaded from them."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from pytest_ldos.judge.baseline.history import HistoryStore
from pytest_ldos.measure.trial.artifacts import LARGEST_RECORD, ScenarioFolder, write_trials
from pytest_ldos.show.report import json_text
from tests.builders.command_line import run_ldos
from tests.builders.history import run_of
from tests.builders.report_snapshots import harmless
from tests.builders.trials import FINGERPRINT

LAB = {name: dataclasses.replace(FINGERPRINT, hostname=name) for name in ("lab-1", "lab-2")}
OTHER = dataclasses.replace(FINGERPRINT, hostname="lab-3", cpu_model="Other CPU", cores=32)


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


def of_machine(number, fingerprint, **changes):
    """A run whose goals have ids of their own, as each run's have."""
    trials = run_of(number, seed=hash_of(number, fingerprint), fingerprint=fingerprint, **changes)
    renamed = (
        dataclasses.replace(each, goal_id=f"{fingerprint.hostname}-{number}-{each.index}") for each in trials.trials
    )
    return dataclasses.replace(trials, trials=tuple(renamed))


def hash_of(number, fingerprint):
    return number * 100 + sum(map(ord, fingerprint.hostname))


def download(folder, run, trials):
    """As an artifact of a machine's job unpacks."""
    write_trials(ScenarioFolder(folder / run / trials.scenario), trials)


@pytest.fixture
def downloaded(project):
    folder = project / "downloaded"
    for fingerprint in (*LAB.values(), OTHER):
        for number in range(3):
            trials = of_machine(number, fingerprint)
            download(folder / f"trials-{fingerprint.hostname}", f"2026010{number}-aa", trials)
    return folder


def history():
    return HistoryStore(Path("history"))


def test_all_machines_go_into_one_data_set_each_run_once(downloaded):
    assert "9 of 9 added" in run_ldos("history", "import", downloaded, "--dir", "history").stdout
    assert "0 of 9 added" in run_ldos("history", "import", downloaded, downloaded, "--dir", "history").stdout
    table = history().read().table
    counts = table.group_by("hostname").agg(pl.col("trials").n_unique()).sort("hostname")
    assert counts.rows() == [("lab-1", 3), ("lab-2", 3), ("lab-3", 3)]


def test_the_overview_has_series_of_each_host_class(downloaded):
    run_ldos("history", "import", downloaded, "--dir", "history")
    lines = run_ldos("history", "--dir", "history").stdout.splitlines()
    heads = [line for line in lines if line.startswith("stack ")]
    classes = sorted([FINGERPRINT.host_class, OTHER.host_class])
    assert heads == [f"stack embedded, host class {each}" for each in classes]
    counts = [line.split()[2] for line in lines if line.split()[:2] == ["baseline", "T1"]]
    runs = {FINGERPRINT.host_class: "6", OTHER.host_class: "3"}
    assert counts == [runs[each] for each in classes]


def test_invalid_files_of_one_machine_affect_no_other(downloaded):
    of_one = sorted((downloaded / "trials-lab-1").rglob("trials.json"))
    of_one[0].write_text("{")
    made = json.loads(of_one[1].read_text())
    made["fingerprint"]["cores"] = "\n::error::owned\x1b[31m"
    of_one[1].write_text(json.dumps(made))
    done = run_ldos("history", "import", downloaded, "--dir", "history")
    assert done.returncode == 2
    assert "7 of 7 added" in done.stdout
    assert "is no JSON" in done.stderr
    assert "is damaged" in done.stderr
    assert "\x1b" not in done.stderr
    assert not [line for line in done.stderr.splitlines() if line.startswith("::")]


def test_importing_only_invalid_files_reports_no_addition(downloaded):
    for file in downloaded.rglob("trials.json"):
        file.write_text("{")
    done = run_ldos("history", "import", downloaded, "--dir", "history")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("is no JSON") == 9


@pytest.mark.parametrize("name", ["../../../escaped", "/etc/escaped", "..", "a\0b"])
def test_names_outside_the_history_are_refused(project, name):
    trials = of_machine(0, LAB["lab-1"])
    file = project / "trials.json"
    write_trials(ScenarioFolder(project), trials)
    made = json.loads(file.read_text())
    for field in ("spec", "stack_kind"):
        damaged = {**made, field: {**made["spec"], "name": name} if field == "spec" else name}
        file.write_text(json.dumps(damaged))
        done = run_ldos("history", "import", file, "--dir", "in/history")
        assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    made["fingerprint"]["rmw"] = name
    file.write_text(json.dumps(made))
    run_ldos("history", "import", file, "--dir", "in/history")
    files = list(project.rglob("*.parquet"))
    assert all((project / "in/history") in path.parents for path in files)


def test_file_not_written_by_a_run_is_refused(project):
    with (project / "trials.json").open("wb") as file:
        file.truncate(LARGEST_RECORD + 1)
    done = run_ldos("history", "import", "trials.json", "--dir", "history")
    assert done.returncode == 2
    assert f"is larger than {LARGEST_RECORD} bytes" in done.stderr


def test_a_report_has_no_trials(project):
    (project / "result.json").write_text(json_text.render(harmless()))
    done = run_ldos("history", "import", "result.json", "--dir", "history")
    assert done.returncode == 2
    assert (
        "is a pytest-ldos report, and holds no pytest-ldos trials\n  → name the trials.json of the same run"
        in done.stderr
    )


@pytest.mark.acceptance
def test_two_imports_at_once_lose_nothing(project):
    """Enough runs that both merge files while the other writes; half of them are in both."""
    for number in range(70):
        for fingerprint in (LAB["lab-1"], LAB["lab-2"]):
            trials = of_machine(number, fingerprint, n=2)
            download(project / "downloaded" / fingerprint.hostname, f"run-{number}", trials)
    command = [sys.executable, "-c", "from pytest_ldos.cli.main import run; run()", "history", "import"]
    one, both = ["downloaded/lab-1"], ["downloaded/lab-2", "downloaded/lab-1"]
    running = [
        subprocess.Popen([*command, *names, "--dir", "history"], stdout=subprocess.PIPE, text=True)
        for names in (one, both)
    ]
    printed = [process.communicate(timeout=300)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert sum(int(each.split()[0]) for each in printed) >= 140
    table = history().read().table
    assert table.select("trials").n_unique() == 140
    assert table.height == table.select("trials", "metric", "trial").n_unique()
    assert table.height == 140 * 2 * table["metric"].n_unique()
    assert "0 of 140 added" in run_ldos("history", "import", "downloaded", "--dir", "history").stdout
