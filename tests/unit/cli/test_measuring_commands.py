"""`ldos calibrate` and `ldos selftest` on a stack that needs no time."""

from __future__ import annotations

import json
import re

import pytest

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import BringUpFailed, ConfigurationError
from pytest_ldos.campaign.starts import RunStore, key_of
from pytest_ldos.cli import measuring
from pytest_ldos.cli.say import parse_duration_s, parse_share, sources_here
from pytest_ldos.host.availability import Availability
from pytest_ldos.host.lock import measuring_lock
from pytest_ldos.measure.trial import rig
from tests.builders.command_line import invoke_ldos, lines_of
from tests.fakes.rig import Motion, noisy, open_fake_rig

QUICK = ("--blocks", "4", "--trials", "6", "--draws", "2")


@pytest.fixture
def ldos(monkeypatch, tmp_path):
    """Runs a command in an empty project; faults that `run` would report are raised."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("pytest_ldos.cli.starts.refuse_unable", lambda spec: None)

    def run(*arguments):
        return invoke_ldos(*arguments)

    return run


@pytest.fixture
def stack(monkeypatch):
    """Makes the commands use made-up motions; each start has noise of its own."""
    starts = []

    def use(script=None, ends=None):
        def opened(spec, folder, **rest):
            starts.append(spec)
            reason = (ends or {}).get(len(starts))
            if reason is not None:
                raise reason
            chosen = script or faulty(spec.faults, noisy(len(starts)))
            return open_fake_rig(spec, folder, script=chosen, on_waiting=rest.get("on_waiting"))

        monkeypatch.setattr(rig, "open_rig", opened)
        return starts

    return use


def faulty(faults, script):
    """Motions with the faults that a specification names."""

    def motion(index):
        plain = script(index)
        fails = index < round(10 * faults.failure_rate)
        return Motion(
            plain.planning_ms + faults.planning_delay_ms,
            plain.planned_ms,
            plain.settle_ms,
            plain.jitter_ms + 10 * faults.control_rate_drop,
            error_code=-1 if fails else plain.error_code,
            message="it fails on request" if fails else "",
        )

    return motion


@pytest.mark.acceptance
def test_own_name_has_its_own_calibration(ldos, stack, tmp_path):
    stack()
    assert ldos("calibrate", *QUICK, "--name", "left").exit_code == 0
    (file,) = tmp_path.glob(".ldos/baselines/*/*/*.calibration.json")
    assert file.name == "left.calibration.json"
    with pytest.raises(ConfigurationError, match="--name left is for one scenario"):
        ldos("calibrate", *QUICK, "--name", "left", "--scenario", "baseline", "--scenario", "cpu_load")
    with pytest.raises(ConfigurationError, match="is that of another scenario"):
        ldos("calibrate", *QUICK, "--name", "cpu_load")


@pytest.mark.acceptance
def test_a_host_is_calibrated(ldos, stack, tmp_path):
    starts = stack()
    result = ldos("calibrate", *QUICK)
    lines = lines_of(result.stdout)
    assert result.exit_code == 0
    assert len(starts) == 4
    assert "baseline: 24 trials of 4 starts of one version" in lines
    (file,) = (tmp_path / ".ldos/baselines/embedded").glob("*/baseline.calibration.json")
    assert lines[-1] == f"stored: {file.relative_to(tmp_path)}"
    assert json.loads(file.read_text())["starts"] == 4
    assert any(line.startswith("T1 ") and line.endswith("5.0 %") for line in lines)
    assert any(line.startswith("interleaved with the base") for line in lines)
    assert "baseline: start 2 of 4, about" in result.stderr
    assert re.search(r"baseline: about .*: 4 stack starts of \d+ s, 24 trials of \d+ s", result.stderr)
    assert not list((tmp_path / ".ldos/runs").glob("*/*"))


@pytest.mark.acceptance
def test_calibration_as_json(ldos, stack):
    stack()
    document = json.loads(ldos("calibrate", *QUICK, "--format", "json", "--effect", "0.3").stdout)
    (scenario,) = document["scenarios"]
    assert (document["schema"], scenario["scenario"], scenario["effect"]) == (1, "baseline", 0.3)
    assert {each["design"] for each in scenario["promises"]} == {"interleaved", "sequential"}
    assert all(each["false_alarms"]["of"] == 2 for each in scenario["promises"])
    assert scenario["calibration"]["metrics"]["T1"]["start_df"] == 3


@pytest.mark.acceptance
def test_interrupted_run_is_saved_and_resumed(ldos, stack):
    stack(ends={3: KeyboardInterrupt()})
    result = ldos("calibrate", *QUICK)
    assert result.exit_code == 130
    assert "interrupted; complete starts are kept" in result.stderr
    starts = stack(ends={5: BringUpFailed("it was not ready", remedy="look at the logs")})
    result = ldos("calibrate", *QUICK)
    assert result.exit_code == exit_codes.INVALID
    assert "continues what was interrupted: 2 starts" in result.stderr
    assert "it was not ready" in result.stderr
    assert "look at the logs" in result.stderr
    made = len(starts)
    stack()
    assert ldos("calibrate", *QUICK).exit_code == 0
    assert len(starts) - made == 1
    spec = sources_here().scenario("baseline", {})
    assert len(RunStore(key_of(spec).folder(sources_here().folder("output") / "calibration")).runs()) == 1


@pytest.mark.acceptance
def test_runs_are_added(ldos, stack):
    stack()
    ldos("calibrate", *QUICK)
    assert "48 trials of 8 starts" in ldos("calibrate", *QUICK).stdout
    assert "24 trials of 4 starts" in ldos("calibrate", *QUICK, "--afresh").stdout


def test_silent_node_is_reported(ldos, stack):
    stack(script=lambda index: Motion(error_code=-1, message="no plan"))
    result = ldos("calibrate", *QUICK)
    assert result.exit_code == exit_codes.INVALID
    assert "all 24 trials failed" in result.stderr


def test_busy_machine_is_refused(ldos, stack):
    stack()
    with measuring_lock():
        for command in ("calibrate", "selftest"):
            result = ldos(command)
            assert result.exit_code == exit_codes.INVALID
            assert "another measuring session holds this machine" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("calibrate", "--scenario", "basline"), r"unknown scenario 'basline'\n.*did you mean 'baseline'"),
        (("calibrate", "--effect", "much"), "--effect is 'much'"),
        (("calibrate", "--effect", "-5%"), "--effect is '-5%'"),
        (("calibrate", "--time-limit", "soon"), "--time-limit is 'soon'"),
        (("calibrate", "--scenario", "own+own"), "scenario 'own\\+own' names a part twice"),
        (("selftest", "--scenario", "own+msg_lod"), "did you mean 'msg_load'"),
        (("selftest", "--faults", "planing_delay"), "did you mean 'planning_delay'"),
        (("selftest", "--sizes", "0.3,big"), "--sizes is 'big'"),
        (("selftest", "--faults", "dropped_goals", "--sizes", "3"), "makes no sense"),
    ],
)
def test_wrong_arguments_are_refused(ldos, stack, tmp_path, arguments, message):
    starts = stack()
    (tmp_path / "pyproject.toml").write_text("[tool.ldos.scenarios.own]\ntrials = 3\n")
    with pytest.raises(ConfigurationError, match=message):
        ldos(*arguments)
    assert starts == []


@pytest.mark.acceptance
def test_faults_are_found(ldos, stack):
    starts = stack()
    result = ldos(
        "selftest", "--draws", "8", "--trials", "10", "--faults", "planning_delay,dropped_goals", "--sizes", "0,60%"
    )
    lines = lines_of(result.stdout)
    assert result.exit_code == 0
    assert len(starts) == 5
    assert any(line.startswith("none 0 no 10") and line.endswith("kept") for line in lines)
    assert any(line.startswith("planning delay 60 % yes") and "T1" in line and "kept 60 % ≥" in line for line in lines)
    assert any(line.startswith("dropped goals 60 % yes") and "success" in line for line in lines)
    assert "not calibrated (ldos calibrate): the gate's own estimates are the expectation" in lines
    assert lines[-1].startswith("the gate kept its promises (2 were due)")


@pytest.mark.acceptance
def test_a_stack_that_ignores_faults_makes_it_fail(ldos, stack):
    starts = []
    stack(script=lambda index: noisy(7)(index + 100 * len(starts)))
    result = ldos("selftest", "--draws", "8", "--trials", "10", "--faults", "planning_delay", "--sizes", "3")
    assert result.exit_code == exit_codes.REGRESSED
    assert "the gate did not keep its promises: planning delay 300 % was missed" in result.stdout


def test_fault_that_prevents_the_start(ldos, stack):
    stack(ends={3: BringUpFailed("it was not ready")})
    result = ldos(
        "selftest", "--draws", "8", "--trials", "5", "--faults", "planning_delay", "--sizes", "3", "--format", "json"
    )
    document = json.loads(result.stdout)
    assert result.exit_code == exit_codes.INVALID
    assert document["points"][1]["verdict"] == "infra"
    assert "it was not ready" in document["points"][1]["problem"]
    assert document["kept"] is True


@pytest.mark.acceptance
def test_self_test_is_compared_with_the_calibration(ldos, stack, tmp_path):
    stack()
    ldos("calibrate", *QUICK)
    asked = ("selftest", "--draws", "8", "--trials", "6", "--faults", "planning_delay", "--sizes", "2")
    assert "calibration: .ldos/baselines/embedded/" in " ".join(ldos(*asked).stdout.split())
    (file,) = (tmp_path / ".ldos/baselines/embedded").glob("*/baseline.calibration.json")
    file.write_text("{")
    result = ldos(*asked)
    assert result.exit_code == exit_codes.INVALID
    assert "baseline.calibration.json is no JSON" in result.stderr


ABSENT = Availability(False, "lttng is missing", "install it")


@pytest.mark.parametrize("command", ["calibrate", "selftest"])
def test_missing_parts_are_reported_before_starting(ldos, stack, monkeypatch, command):
    starts = stack()
    monkeypatch.setattr("pytest_ldos.cli.starts.refuse_unable", measuring.refuse_unable)
    monkeypatch.setattr(measuring, "recording_available", lambda: ABSENT)
    result = ldos(command)
    assert result.exit_code == exit_codes.INVALID
    assert "cannot measure: lttng is missing" in result.stderr
    assert starts == []


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10min", 600), ("1.5h", 5400), (" 7 ", 7), ("2 min", 120)])
def test_times(text, seconds):
    assert parse_duration_s(text, what="it") == seconds


@pytest.mark.parametrize(("text", "share"), [("15%", 0.15), ("0.15", 0.15), ("200 %", 2.0), ("1e-2", 0.01)])
def test_shares(text, share):
    assert parse_share(text, what="it") == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "%", "nan", "inf", "-1", "0", "many"])
def test_no_shares(text):
    with pytest.raises(ConfigurationError, match="write it as"):
        parse_share(text, what="it")


def test_an_interrupted_self_test(ldos, stack):
    stack(ends={2: KeyboardInterrupt()})
    result = ldos("selftest", "--quick")
    assert result.exit_code == 130
    assert "a self-test saves nothing" in result.stderr


@pytest.mark.parametrize(
    "command",
    [("sweep", "--over", "trials=1,2"), ("find-breaking", "trials", "--lo=1", "--hi=9"), ("calibrate",), ("selftest",)],
)
@pytest.mark.parametrize("how", ["environment", "project"])
def test_commands_without_starts_refuse_watch_options(ldos, stack, monkeypatch, tmp_path, command, how):
    starts = stack()
    if how == "environment":
        monkeypatch.setenv("LDOS_PROFILE", "1")
        monkeypatch.setenv("LDOS_SYSCALLS", "1")
    else:
        (tmp_path / "pyproject.toml").write_text("[tool.ldos]\nprofile = true\nsyscalls = true\n")
    with pytest.raises(ConfigurationError, match="profile and syscalls is set, but this command's starts") as caught:
        ldos(*command)
    assert "LDOS_PROFILE=0 LDOS_SYSCALLS=0" in caught.value.remedy
    assert not starts
