"""The command line on saved results."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_ldos.base import exit_codes
from pytest_ldos.judge.baseline.key import Calibration, MetricNoise
from pytest_ldos.judge.baseline.store import BaselineStores, save_calibration
from pytest_ldos.judge.gate import reasons as why
from pytest_ldos.measure.trial.artifacts import ScenarioFolder, write_trials
from pytest_ldos.show.report.reasons import describe_reason
from tests.builders.command_line import run_ldos as ldos
from tests.builders.own_metric import with_own
from tests.builders.trials import FINGERPRINT, noisy_set

LDOS = Path(sys.executable).with_name("ldos")


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def save(project, run: str, *sets):
    for trials in sets:
        write_trials(ScenarioFolder(project / ".ldos/runs" / run / trials.scenario), trials)
    return f".ldos/runs/{run}"


def stores(project) -> BaselineStores:
    return BaselineStores(repository=project / "baselines", local=project / ".ldos/baselines")


def ldos_process(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run([str(LDOS), *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("file", "text"), [("pyproject.toml", "[tool.ldos]\ntrials = 5\n"), ("ldos.toml", 'baselines = "kept"\n')]
)
def test_commands_find_settings_runs_and_baselines_above_the_working_directory(project, monkeypatch, file, text):
    (project / file).write_text(text)
    save(project, "1", noisy_set(1))
    stores(project).save(noisy_set(2), to_repository=False)
    (project / "tests/arm").mkdir(parents=True)
    (project / "tests/arm/pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(project / "tests/arm")
    assert "local" in ldos("baseline", "list").stdout
    assert "baseline: passed; 10 of 10" in ldos("report", "latest").stdout
    promoted = ldos("baseline", "promote", "baseline").stdout
    assert f"{project}/{'kept' if 'kept' in text else 'baselines'}/" in promoted
    assert [each.name for each in project.rglob(".ldos")] == [".ldos"]


def slower(factor=2.0):
    """A run of another stack than the baseline's."""
    versions = dataclasses.replace(FINGERPRINT, versions={"mujoco": "3.3"})
    return noisy_set(2, factors={"T1": factor}, fingerprint=versions)


def test_floors_configured_above_the_working_directory_are_used(project, monkeypatch):
    (project / "pyproject.toml").write_text("[tool.ldos.gate.floors]\nT1 = 3.0\n")
    base, head = save(project, "1", noisy_set(1)), save(project, "2", slower(1.5))
    (project / "deep/er").mkdir(parents=True)
    monkeypatch.chdir(project / "deep/er")
    assert ldos("compare", f"../../{base}", f"../../{head}").returncode == 0
    monkeypatch.setenv("LDOS_CONFIG", "other.toml")
    (project / "other.toml").write_text("[gate.floors]\nT1 = 0.05\n")
    assert ldos("compare", f"../../{base}", f"../../{head}").returncode == 10


def test_comparing_equal_runs(project):
    base, head = save(project, "1", noisy_set(1)), save(project, "2", noisy_set(2))
    done = ldos("compare", base, head)
    assert done.returncode == 0, done.stderr
    assert "baseline: passed" in done.stdout


def test_comparing_a_slower_run(project):
    base, head = save(project, "1", noisy_set(1)), save(project, "2", slower(1.5))
    done = ldos("compare", base, head)
    assert done.returncode == 10
    assert "T1 (planning latency) regressed" in done.stdout


def test_user_metric_needs_no_conftest(project):
    """The records say what it is."""
    (project / "pyproject.toml").write_text("[tool.ldos.gate.floors]\ngrip_rate = 0.2\n")
    base = save(project, "1", with_own(noisy_set(1, n=20)))
    done = ldos("compare", base, save(project, "2", with_own(noisy_set(2, n=20), 0.5)))
    assert done.returncode == 10, done.stderr
    assert "grip_rate (rate of the gripper) regressed: -49.7 %" in done.stdout
    report = ldos("report", base)
    assert report.returncode == 0, report.stderr
    assert "rate of the gripper" in report.stdout


def test_only_common_scenarios_are_compared(project):
    base = save(project, "1", noisy_set(1), noisy_set(2, name="msg_load"))
    done = ldos("compare", base, save(project, "2", noisy_set(3, name="msg_load")))
    assert done.returncode == 0
    assert "msg_load: passed" in done.stdout
    assert "baseline:" not in done.stdout
    assert f"base: {base} (commit" in done.stdout


def test_comparing_incomparable_results_is_refused(project):
    other = noisy_set(1, fingerprint=dataclasses.replace(FINGERPRINT, cores=64))
    base, head = save(project, "1", other), save(project, "2", noisy_set(2))
    done = ldos("compare", base, head)
    assert done.returncode == 0
    assert "not_comparable" in done.stdout
    (project / "pyproject.toml").write_text("[tool.ldos]\nstrict = true\n")
    assert ldos("compare", base, head).returncode == 12


def test_nothing_in_common(project):
    base, head = save(project, "1", noisy_set(1)), save(project, "2", noisy_set(2, name="msg_load"))
    done = ldos("compare", base, head)
    assert done.returncode == 2
    assert "no scenario in common" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_latest_run_is_reported(project):
    save(project, "20260101-000000-aa", noisy_set(1, n=3))
    save(project, "20260102-000000-bb", noisy_set(2, n=7))
    done = ldos("report")
    assert done.returncode == 0
    assert "7 of 7 trials succeeded" in done.stdout


def test_baseline_run_is_not_compared_with_itself(project):
    trials = noisy_set(1)
    save(project, "1", trials)
    stores(project).save(trials, to_repository=False)
    done = ldos("report")
    assert "is the baseline: .ldos/baselines/" in done.stdout
    assert "MDE" not in done.stdout


def test_missing_comparison_has_a_reason(project):
    run = save(project, "1", noisy_set(1))
    assert "baseline: no_baseline" in ldos("report", run).stdout
    stores(project).save(noisy_set(2), to_repository=False).write_text("{")
    damaged = ldos("report", run)
    assert "baseline: invalid" in damaged.stdout
    assert "the baseline cannot be read" in damaged.stdout


def test_a_damaged_baseline_is_neither_pinned_nor_promoted(project):
    stores(project).save(noisy_set(1), to_repository=False).write_text("{")
    for command in ("pin", "promote"):
        done = ldos("baseline", command, "baseline")
        assert done.returncode == 2
        assert "is no JSON" in done.stderr
    assert len(list(project.glob("**/baseline*.json"))) == 1


def test_a_baseline_alone_has_no_verdict(project):
    stores(project).save(noisy_set(1), to_repository=False)
    shown = ldos("baseline", "show", "baseline").stdout
    assert "baseline: 10 of 10 trials succeeded" in shown
    missing = ldos("baseline", "show", "baseline", "--host-class=other")
    assert "host class other has no such baseline" in missing.stderr


def test_the_latest_run_is_one_that_measured_something(project):
    save(project, "1", noisy_set(1))
    (project / ".ldos/runs/2/baseline/logs").mkdir(parents=True)
    assert ldos("report").returncode == 0


def test_an_effect_floor_of_an_unknown_metric(project):
    (project / "pyproject.toml").write_text("[tool.ldos.gate.floors]\nT9 = 0.1\n")
    done = ldos("report", save(project, "1", noisy_set(1)))
    assert done.returncode == 2
    assert "unknown metric with an effect floor: 'T9'" in done.stderr


def test_report_compared_with_the_baseline(project):
    BaselineStores(project / "baselines", project / ".ldos/baselines").save(noisy_set(1), to_repository=False)
    done = ldos("report", save(project, "1", slower()))
    assert "T1 (planning latency) regressed" in done.stdout


def test_report_judges_by_the_repositorys_baseline_if_configured(project, monkeypatch):
    BaselineStores(project / "baselines", project / ".ldos/baselines").save(noisy_set(1), to_repository=True)
    run = save(project, "1", slower())
    shown = ldos("report", run).stdout
    assert "baseline: no_baseline" in shown
    assert describe_reason(why.BaselineShared()) in shown
    assert "regressed" not in shown
    monkeypatch.setenv("LDOS_BASELINES", "baselines")
    assert "T1 (planning latency) regressed" in ldos("report", run).stdout


def interleaved_run(project, head, base):
    run = save(project, "1", head)
    write_trials(ScenarioFolder(project / run / head.scenario).base, base)
    return run


def test_report_of_an_interleaved_run_has_its_base(project):
    """A stored baseline of another speed does not matter."""
    stored = noisy_set(3, factors={"T1": 0.5})
    BaselineStores(project / "baselines", project / ".ldos/baselines").save(stored, to_repository=True)
    head, base = noisy_set(1, session="s", commit="new"), noisy_set(2, session="s", commit="0ld")
    run = interleaved_run(project, head, base)
    (section,) = json.loads(ldos("report", run, "--format", "json").stdout)["sections"]
    assert section["verdict"] == "passed"
    assert section["base"]["commit"] == "0ld"
    assert (section["base"]["label"], section["base"]["file"]) == ("base", f"{run}/baseline/base/trials.json")
    assert section["interleaving"]["drifts"] == []  # one block each shows no drift


def test_report_of_a_run_with_an_invalid_base_is_invalid(project):
    run = interleaved_run(
        project, noisy_set(1, session="s"), noisy_set(2, session="s", incomplete="simulator was killed")
    )
    assert describe_reason(why.OfBase(why.NotFinished("simulator was killed"))) in ldos("report", run).stdout


def test_a_base_of_another_session_is_not_reported(project):
    run = interleaved_run(project, noisy_set(1, session="s"), noisy_set(2, session="other"))
    assert describe_reason(why.BaselineMissing()) in ldos("report", run).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["report"], "there are no runs"),
        (["report", "nowhere"], "holds no trials"),
        (["baseline", "show", "baseline"], "there is no baseline of 'baseline'"),
        (["baseline", "promote", "baseline"], "there is no local baseline"),
    ],
)
def test_missing_runs_and_baselines_are_refused(project, arguments, message):
    done = ldos(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_damaged_run(project):
    file = project / "trials.json"
    file.write_text("{")
    done = ldos("report", str(file))
    assert done.returncode == 2
    assert "is no JSON" in done.stderr


@pytest.mark.acceptance
def test_an_unknown_command_and_a_mistyped_setting(project):
    assert ldos_process("compair", "a", "b").returncode == 2
    (project / "pyproject.toml").write_text("[tool.ldos]\ntrails = 3\n")
    done = ldos_process("report")
    assert done.returncode == 2
    assert "did you mean 'trials'?" in done.stderr


def test_baselines_are_listed_shown_pinned_and_promoted(project):
    assert "no baselines yet" in ldos("baseline", "list").stdout
    BaselineStores(project / "baselines", project / ".ldos/baselines").save(noisy_set(1), to_repository=False)
    assert "local" in ldos("baseline", "list").stdout
    assert "10 of 10 trials succeeded" in ldos("baseline", "show", "baseline").stdout
    assert "baseline.pinned.json" in ldos("baseline", "pin", "baseline").stdout
    promoted = ldos("baseline", "promote", "baseline")
    assert promoted.returncode == 0
    assert (project / promoted.stdout.removeprefix("promoted: ").strip()).is_file()
    listing = ldos("baseline", "list").stdout
    assert "repository" in listing
    assert "(pinned)" in listing


def test_ambiguous_host_class_is_refused(project):
    stores = BaselineStores(project / "baselines", project / ".ldos/baselines")
    other = noisy_set(2, fingerprint=dataclasses.replace(FINGERPRINT, cores=64))
    for trials in (noisy_set(1), other):
        stores.save(trials, to_repository=True)
    done = ldos("baseline", "show", "baseline")
    assert done.returncode == 2
    assert "--host-class" in done.stderr
    assert ldos("baseline", "show", "baseline", "--host-class", other.fingerprint.host_class).returncode == 0


def test_an_unreadable_baseline_is_listed_as_such(project):
    file = BaselineStores(project / "baselines", project / ".ldos/baselines").save(noisy_set(1), to_repository=True)
    file.write_text("{")
    assert "unreadable" in ldos("baseline", "list").stdout


def test_help_and_version():
    assert "compare" in ldos("--help").stdout
    assert ldos_process("--version").stdout.startswith("pytest-ldos ")


@pytest.mark.parametrize("arguments", [pytest.param(["--version"], marks=pytest.mark.acceptance), ["report"]])
def test_unwritable_output_is_named(project, arguments):
    save(project, "20260101-000000-aaaaaa", noisy_set(seed=1))
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([str(LDOS), *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == exit_codes.INVALID
    first, remedy = done.stderr.splitlines()
    assert first == "ldos: /dev/full cannot be written: No space left on device"
    assert remedy.endswith("or send the output elsewhere")


def test_reader_may_close_the_pipe(project):
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run([str(LDOS), "--version"], stdout=write_end, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (1, "")


def calibrated(project, trials, run_sd=0.3):
    noise = MetricNoise(trial_sd=0.05, start_sd=run_sd, start_df=7, run_sd=run_sd, run_df=7, floor=0.05)
    made = Calibration(
        scenario="baseline",
        stack_kind=trials.stack_kind,
        fingerprint=trials.fingerprint,
        made_at="2026-01-01",
        commit="",
        starts=8,
        trials=64,
        metrics={"T1": noise},
    )
    return save_calibration(stores(project), made)


def test_comparing_uses_the_calibration(project):
    """The same runs are red without it."""
    base, head = save(project, "1", noisy_set(1)), save(project, "2", slower(1.5))
    file = calibrated(project, noisy_set(1))
    done = ldos("compare", base, head)
    assert done.returncode == 0, done.stdout
    assert f"calibration: {file.relative_to(project)} (8 starts, 64 trials, 2026-01-01)" in done.stdout
    file.write_text("[]")
    done = ldos("compare", base, head)
    assert done.returncode == 10
    assert "the calibration cannot be read:" in done.stdout
    assert ldos("compare", base, save(project, "3", noisy_set(3))).returncode == 11


def test_a_report_uses_the_calibration(project):
    stores(project).save(noisy_set(1), to_repository=False)
    run = save(project, "1", noisy_set(2, factors={"T1": 1.5}))
    assert "regressed" in ldos("report", run).stdout
    calibrated(project, noisy_set(1))
    shown = ldos("report", run).stdout
    assert "regressed" not in shown
    assert "(8 starts, 64 trials, 2026-01-01)" in shown


def test_another_hosts_calibration_is_named(project):
    calibrated(project, noisy_set(1, fingerprint=dataclasses.replace(FINGERPRINT, cores=64)))
    base, head = save(project, "1", noisy_set(1)), save(project, "2", noisy_set(2))
    assert (
        "not calibrated: there is a calibration of host class test-cpu_64-cores" in ldos("compare", base, head).stdout
    )


@pytest.mark.parametrize(
    ("name", "beginning"),
    [("x.html", "<!doctype html>"), ("x.md", "<!-- pytest-ldos report -->"), ("x.json", '{\n "kind"')],
)
def test_comparison_is_written_in_the_format_of_the_files_name(project, name, beginning):
    base, head = save(project, "1", noisy_set(1)), save(project, "2", slower(1.5))
    done = ldos("compare", base, head, "--output", f"out/{name}")
    assert done.returncode == 10, done.stderr
    assert done.stdout == f"report: out/{name}\n"
    text = (project / "out" / name).read_text("utf-8")
    assert text.startswith(beginning)
    assert "regressed" in text


def test_a_report_is_printed_in_a_format(project):
    run = save(project, "1", noisy_set(1))
    printed = ldos("report", run, "--format=json")
    assert json.loads(printed.stdout)["sections"][0]["scenario"] == "baseline"
    assert ldos("report", run, "--format", "md", "--output", "notes.txt").returncode == 0
    assert "## ⚠️ ldos on embedded: no baseline" in (project / "notes.txt").read_text("utf-8")


def test_unknown_report_format_is_refused(project):
    run = save(project, "1", noisy_set(1))
    assert "is not one of" in ldos("report", run, "--format=pdf").stderr
    done = ldos("report", run, "--output=x.pdf")
    assert done.returncode == 2
    assert "let it end with .html, .md, .json" in done.stderr
    (project / "file").touch()
    refused = ldos("report", run, "--output=file/x.md")
    assert refused.returncode == 2
    assert "cannot be written" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_command_loads_none_of_the_others():
    code = (
        "import atexit, sys; sys.argv = ['ldos', 'doctor', '--help'];"
        "atexit.register(lambda: print(*(name for name in sys.modules if name.startswith('pytest_ldos.'))));"
        "from pytest_ldos.cli.main import run; run()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert "pytest_ldos.cli.setup" in loaded
    assert {"pytest_ldos.cli.results", "pytest_ldos.judge.gate.decide", "pytest_ldos.campaign.blocks"} & set(
        loaded
    ) == set()


def test_command_starts_without_slow_libraries():
    """`scipy.special` has the distributions that are needed."""
    code = (
        "import sys; from pytest_ldos.cli.main import make_app; make_app();"
        "print(*{'scipy.stats', 'matplotlib', 'dask', 'mujoco'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
