"""``ldos history``: lists, plots, pins, imports, and refusals."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import sys
from pathlib import Path

import pytest

from pytest_ldos.base.errors import ConfigurationError, RecordUnreadable, Unavailable
from pytest_ldos.campaign.order import Role
from pytest_ldos.judge.baseline.history import HistoryStore, build_rows, identify
from pytest_ldos.judge.baseline.trend import read_pin
from pytest_ldos.measure.trial.artifacts import ScenarioFolder, write_trials
from tests.builders.command_line import invoke_ldos
from tests.builders.history import add_run, commit, fill, interleaved_set, run_of

STEADY: list[dict[str, float]] = [{}] * 6


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LDOS_HISTORY", "history")
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


@pytest.fixture
def history(project):
    return HistoryStore(project / "history")


def ldos(*arguments):
    return invoke_ldos("history", *arguments)


def refusal(*arguments, kind=ConfigurationError) -> str:
    with pytest.raises(kind) as caught:
        ldos(*arguments)
    assert caught.value.remedy
    return str(caught.value)


# --- listing ----------------------------------------------------------------------------


def test_the_overview_has_a_line_for_each_series(history):
    fill(history.directory, STEADY)
    add_run(history, 9, name="msg_load")
    lines = ldos().stdout.splitlines()
    assert lines[0].startswith("stack embedded, host class test-cpu_4-cores")
    for metric in ("T1", "T2", "T2x", "T3", "T4", "T5"):
        assert any(line.split()[:3] == ["baseline", metric, "6"] for line in lines)
        assert any(line.split()[:3] == ["msg_load", metric, "1"] for line in lines)


def test_the_commits_of_a_metric(history):
    fill(history.directory, [*STEADY, {"T1": 2.0}])
    text = ldos("--metric", "T1").stdout
    assert "T1 planning latency of 'baseline': 7 runs, lower is better" in text
    for number in range(7):
        assert commit(number) in text
    assert "nothing is pinned; anchor: the first runs" in text
    assert "o commit" in text
    assert "T4" not in text


def test_creep_is_shown(history):
    """Thirty steps of 1 %, each below the floor of 5 %."""
    fill(history.directory, [{"T1": 1.01**i} for i in range(30)], cv=0.01)
    ldos("pin", commit(0))
    assert "creep: pin" in ldos("--metric", "T1").stdout
    overview = next(line for line in ldos().stdout.splitlines() if " T1 " in line)
    assert "creep: pin" in overview
    (series,) = json.loads(ldos("--metric", "T1", "--format", "json").stdout)["series"]
    last = series["commits"][-1]
    assert last["creep_since_pin"]
    assert last["from_pin"] > 0.2
    assert abs(last["step"]) < 0.05


def test_without_a_pin_there_is_no_change_since_one(history):
    fill(history.directory, [{"T1": 1.01**i} for i in range(30)], cv=0.01)
    shown = [ldos().stdout, ldos("--metric", "T1").stdout]
    (series,) = json.loads(ldos("--metric", "T1", "--format", "json").stdout)["series"]
    rows = list(csv.DictReader(io.StringIO(ldos("--metric", "T1", "--format", "csv").stdout)))
    for text in shown:
        assert "since pin" not in text
        assert "since start" in text
        assert "creep: start" in text
    assert series["pinned"] is None
    assert {each["from_pin"] for each in series["commits"]} == {None}
    assert {row["from_pin"] for row in rows} == {""}
    last = series["commits"][-1]
    assert (last["creep_since_start"], last["creep_since_pin"]) == (True, False)
    assert (rows[-1]["creep_since_start"], rows[-1]["creep_since_pin"]) == ("True", "False")
    assert float(rows[-1]["from_start"]) == last["from_start"] > 0.2


def test_series_with_and_without_a_pin_have_separate_columns(history):
    for name in ("baseline", "msg_load"):
        for number in range(3):
            add_run(history, number, name=name)
    ldos("pin", commit(0), "--scenario", "msg_load")
    heading, *lines = ldos().stdout.splitlines()[1:]
    places = {title: heading.index(title) for title in ("since pin", "since start")}
    for line in lines:
        known = "since pin" if "msg_load" in line else "since start"
        for title, place in places.items():
            assert bool(line[place : place + len(title)].strip()) is (title == known)


def test_a_change_of_level_is_marked(history):
    fill(history.directory, [{"T1": 1.3 if i >= 12 else 1.0} for i in range(24)], cv=0.02)
    (series,) = json.loads(ldos("--metric", "T1", "--format", "json").stdout)["series"]
    assert [i for i, each in enumerate(series["commits"]) if each["change_point"]] == [12]
    assert "level changes" in ldos("--metric", "T1").stdout


@pytest.mark.parametrize("width", ["60", "80", "100", "120", "200"])
def test_lines_fit_the_terminal(history, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)
    fill(history.directory, STEADY)
    text = ldos("--metric", "T4").stdout
    table = text.splitlines()[1:-4]
    assert max(len(line) for line in table) <= max(80, int(width))
    assert "…  " not in text.replace(" … ", "")
    assert commit(5) in text


def test_filters(history):
    fill(history.directory, STEADY)
    add_run(history, 9, name="msg_load")
    add_run(history, 10, stack_kind="ros2-gz")
    assert "msg_load" not in ldos("--scenario", "baseline").stdout
    assert "ros2-gz" not in ldos("--stack", "embedded").stdout
    (host,) = {path.name for path in history.directory.glob("embedded/*")}
    assert "baseline" in ldos("--host-class", host).stdout


def test_the_last_commits_and_those_since(history):
    fill(history.directory, STEADY)

    def shown(*arguments):
        (series,) = json.loads(ldos("--metric", "T4", "--format", "json", *arguments).stdout)["series"]
        return [each["commit"] for each in series["commits"]]

    assert shown("--last", "2") == [commit(4), commit(5)]
    assert shown("--since", "2026-01-05") == [commit(4), commit(5)]
    assert shown("--since", commit(3)[:8]) == [commit(3), commit(4), commit(5)]


def test_csv(history):
    fill(history.directory, STEADY, branch="=cmd()")
    rows = list(csv.DictReader(io.StringIO(ldos("--format", "csv").stdout)))
    assert len(rows) == 6 * 6
    assert {row["commit"] for row in rows} == {commit(i) for i in range(6)}
    assert all(row["branch"] == "'=cmd()" for row in rows)
    assert all(float(row["low"]) < float(row["location"]) < float(row["high"]) for row in rows)


def test_control_characters_are_escaped(history):
    add_run(history, 0, commit="\x1b[31mred")
    assert "\x1b" not in ldos("--metric", "T1").stdout
    assert "\\x1b[31mred" in ldos("--metric", "T1").stdout


def test_names_are_not_executed_as_workflow_commands(history):
    for number, name in enumerate(("::error::x", "##[error]x")):
        add_run(history, number, name=name)
    shown = ldos().stdout
    assert "error" in shown
    assert "\n::" not in shown
    assert "##[" not in shown


def test_damaged_files_are_named(history):
    fill(history.directory, STEADY)
    path = next(history.directory.rglob("*.parquet"))
    path.write_bytes(b"PAR1")
    result = ldos("--metric", "T1")
    assert f"{path.relative_to(history.directory.parent)} is damaged and left out" in result.stderr
    assert "5 runs" in result.stdout


# --- plots ------------------------------------------------------------------------------


def test_a_page_that_works_offline(history):
    fill(history.directory, [{"T1": 1.01**i} for i in range(20)], cv=0.01, branch="</script><b>")
    add_run(history, 30, commit="</script><i>")
    ldos("--metric", "T1", "--plot", "trend.html")
    page = (history.directory.parent / "trend.html").read_text()
    assert '<svg viewBox="' in page
    assert "<script" not in page
    assert not re.search(r"https?://|url\(|@import", page)
    assert "</script><i>" not in page
    assert commit(19) in page


def test_an_unknown_kind_of_plot(history):
    fill(history.directory, STEADY)
    assert "not a kind of plot" in refusal("--metric", "T1", "--plot", "trend.pdf")


def test_an_image_shows_one_series(history):
    fill(history.directory, STEADY)
    assert "an image shows one series, and there are 6" in refusal("--plot", "trend.svg")


@pytest.mark.parametrize(("name", "begins"), [("t.svg", b"<svg "), ("t.png", b"\x89PNG\r\n")])
def test_an_image(history, name, begins):
    fill(history.directory, STEADY)
    ldos("--metric", "T1", "--plot", name)
    assert (history.directory.parent / name).read_bytes().startswith(begins)


def test_without_matplotlib(history, monkeypatch):
    fill(history.directory, STEADY)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install 'pytest-ldos[report]'" in refusal("--metric", "T1", "--plot", "t.html", kind=Unavailable)


def test_a_plot_that_cannot_be_written(history):
    fill(history.directory, STEADY)
    Path("file").touch()
    assert "cannot be written" in refusal("--metric", "T1", "--plot", "file/trend.html")


# --- pins -------------------------------------------------------------------------------


def test_pinning_a_commit(history):
    fill(history.directory, [{"T1": 1.01**i} for i in range(12)], cv=0.01)
    assert f"({commit(6)})" in ldos("pin", commit(6)[:7]).stdout
    text = ldos("--metric", "T1").stdout
    assert f"pinned anchor: {commit(6)}, 14" in text or f"pinned anchor: {commit(6)}, 15" in text
    assert ldos("unpin").exit_code == 0
    assert "nothing is pinned; anchor: the first runs" in ldos("--metric", "T1").stdout
    assert "nothing is pinned" in refusal("unpin")


def test_pinning_a_run_of_each_scenario(history):
    add_run(history, 0)
    add_run(history, 0, name="msg_load")
    assert ldos("pin", "run-000").stdout.count("pinned: ") == 2
    assert ldos("unpin", "--scenario", "msg_load").stdout.count("unpinned: ") == 1


def test_pinning_an_interleaved_run_pins_its_head(project, history):
    """In any order of rows: of ten runs, each would be right by chance."""
    for number in range(0, 20, 2):
        run = save(project, f"run-{number}", interleaved_set(number + 1, Role.HEAD))
        write_trials(ScenarioFolder(project / run / "baseline").base, interleaved_set(number, Role.BASE))
        ldos("import", run)
        ldos("pin", f"run-{number}")
        (folder,) = {path.parent for path in history.directory.rglob("pin.json")}
        pinned = history.read().table.filter(trials=read_pin(folder).trials)
        assert set(pinned["version"]) == {"head"}
        assert set(pinned["commit"]) == {commit(number + 1)}


def test_a_run_that_measured_a_scenario_twice_is_pinned_by_its_set(history):
    first, second = (
        dataclasses.replace(run_of(0, seed=seed), started_at=f"2026-01-01T0{seed}:00:00") for seed in (1, 2)
    )
    for trials in (first, second):
        history.append(build_rows(trials, run="twice", branch="", verdict="passed"))
    printed = refusal("pin", "twice")
    assert "measured a scenario more than once" in printed
    assert all(
        f"{identify(each)} (baseline, {each.started_at.replace('T', ' ')})" in printed for each in (first, second)
    )
    ldos("pin", identify(second))
    (file,) = history.directory.rglob("pin.json")
    assert read_pin(file.parent).trials == identify(second)


@pytest.mark.parametrize(
    ("name", "printed"), [("zzz", "no commit or run is called 'zzz'"), ("run-00", "did you mean 'run-00")]
)
def test_an_unknown_pin(history, name, printed):
    fill(history.directory, STEADY)
    assert printed in refusal("pin", name)


def test_an_ambiguous_pin(history):
    add_run(history, 0, commit="abcd111")
    add_run(history, 1, commit="abcd222")
    assert "several commits begin with 'abcd'" in refusal("pin", "abcd")


def test_uncommitted_changes_cannot_be_pinned(history):
    add_run(history, 0, commit="abcd111+")
    assert "pin one of its runs" in refusal("pin", "abcd111+")


def test_no_commits_at_all(history):
    add_run(history, 0, commit="")
    assert "outside of git" in refusal("pin", "abcd")
    assert "run-000" in ldos("--metric", "T1").stdout
    assert "outside of git" in ldos("--metric", "T1").stdout


# --- import -----------------------------------------------------------------------------


def save(project, name, *sets):
    for trials in sets:
        write_trials(ScenarioFolder(project / ".ldos/runs" / name / trials.scenario), trials)
    return f".ldos/runs/{name}"


def test_saved_runs_are_imported_once(project, history):
    first = save(project, "20260101-000000-aa", run_of(0), run_of(0, name="msg_load"))
    second = save(project, "20260102-000000-bb", run_of(1))
    assert "3 of 3 added" in ldos("import", first, second).stdout
    assert "0 of 3 added" in ldos("import", first, second).stdout
    assert "0 of 1 added" in ldos("import", "latest").stdout
    assert set(history.read().table["run"]) == {"20260101-000000-aa", "20260102-000000-bb"}
    assert set(history.read().table["verdict"]) == {"unjudged"}


def test_the_base_of_a_saved_session_is_imported_with_it(project, history):
    run = save(project, "run", interleaved_set(1, Role.HEAD))
    write_trials(ScenarioFolder(project / run / "baseline").base, interleaved_set(0, Role.BASE))
    assert "2 of 2 added" in ldos("import", run).stdout
    versions = history.read().table.select("commit", "version", "run").unique().sort("version").rows()
    assert versions == [(commit(0), "base", "run"), (commit(1), "head", "run")]


def test_the_record_of_a_base_by_its_own_name(project, history):
    run = save(project, "run", interleaved_set(1, Role.HEAD))
    write_trials(ScenarioFolder(project / run / "baseline").base, interleaved_set(0, Role.BASE))
    ldos("import", f"{run}/baseline/base/trials.json")
    table = history.read().table
    assert (set(table["version"]), set(table["run"])) == ({"base"}, {"run"})


def test_imported_runs_that_missed_their_expectation_are_regressed(project, history):
    ldos("import", save(project, "run", run_of(0, failures=5)))
    assert set(history.read().table["verdict"]) == {"regressed"}


def test_unreadable_files_are_not_imported(project):
    assert "holds no trials" in refusal("import", "nowhere")
    (project / "broken.json").write_text("{")
    assert "is no JSON" in refusal("import", "broken.json", kind=RecordUnreadable)


@pytest.mark.parametrize("moment", ["yesterday", "", "0001-01-01T00:00:00+14:00", 5, None])
def test_record_without_a_time_cannot_be_imported(project, moment):
    run = save(project, "run", run_of(0))
    file = project / run / "baseline/trials.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"started_at": moment}))
    why = f"it began at no moment: {moment!r}" if isinstance(moment, str) else f"started_at is {moment!r}"
    found = refusal("import", run, kind=RecordUnreadable)
    assert "is damaged (ValueError: " in found
    assert why in found


@pytest.mark.parametrize("place", ["embedded", "embedded/HOST", "embedded/HOST/baseline"])
def test_a_folder_that_cannot_be_made(project, history, place):
    trials = run_of(0)
    file = history.directory / place.replace("HOST", trials.fingerprint.host_class)
    file.parent.mkdir(parents=True)
    file.write_text("")
    printed = refusal("import", save(project, "run", trials))
    assert "cannot be written" in printed
    assert "name another history with --dir" in printed


# --- where there is nothing to show ---------------------------------------------------------


def test_missing_history_setting_is_reported(project, monkeypatch):
    monkeypatch.delenv("LDOS_HISTORY")
    assert "no history is configured" in refusal()


def test_toml_names_the_history(project, monkeypatch):
    monkeypatch.delenv("LDOS_HISTORY")
    (project / "pyproject.toml").write_text('[tool.ldos]\nhistory = "kept"\n')
    fill(project / "kept", STEADY)
    assert "baseline" in ldos().stdout


def test_an_empty_history(project):
    assert "there is no run in the history" in refusal()
    (project / "history").mkdir()
    assert "ldos history import" in refusal("--metric", "T1")


def test_a_file_in_place_of_a_history(project):
    (project / "history").write_text("")
    assert "is a file, not a directory" in refusal()
    assert "is a file, not a directory" in refusal("import", "latest")


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["--metric", "T44"], "unknown metric 'T44'\n  → did you mean 'T4'"),
        (["--scenario", "base_line"], "did you mean 'baseline'?"),
        (["--stack", "ros3"], "unknown stack 'ros3'"),
        (["--host-class", "cray"], "unknown host class 'cray'"),
        (["--metric", "T4", "--since", "yesterday"], "neither a date nor a commit"),
    ],
)
def test_unknown_names(history, arguments, printed):
    fill(history.directory, STEADY)
    assert printed in refusal(*arguments)
