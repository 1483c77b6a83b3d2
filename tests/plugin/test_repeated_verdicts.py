"""``ldos report`` reproduces the verdict that a test printed, whatever was stored since."""

from __future__ import annotations

import json

import pytest

from tests.builders.command_line import run_ldos


@pytest.fixture
def verdicts(project, monkeypatch):
    """The verdicts of a report, by scenario."""
    monkeypatch.chdir(project.path)

    def read(name="result.json"):
        document = json.loads((project.path / name).read_text("utf-8"))
        return {each["scenario"]: each["verdict"] for each in document["sections"]}

    return read


def report(*arguments):
    ended = run_ldos("report", *arguments, "--output", "again.json")
    assert ended.returncode == 0, ended.stderr


def test_a_first_run_stays_without_a_baseline_unless_its_judgement_is_damaged(project, run, verdicts):
    run("--ldos-report", "result.json")
    assert verdicts() == {"baseline": "no_baseline"}
    report()
    assert verdicts("again.json") == verdicts()
    (judged,) = project.path.glob(".ldos/runs/*/baseline/judged.json")
    judged.write_text(judged.read_text("utf-8").replace('"policy"', '"police"'), "utf-8")
    ended = run_ldos("report")
    assert ended.returncode == 2
    assert "judged.json is damaged" in ended.stderr
    assert "delete judged.json" in ended.stderr


@pytest.mark.acceptance
def test_regression_stays_one_after_the_baseline_is_replaced(project, run, verdicts):
    run()
    run("--ldos-report", "result.json", stack="noisy(2, planning=3.0)")
    assert verdicts() == {"baseline": "regressed"}
    (regressed,) = {
        each.parent
        for each in project.path.glob(".ldos/runs/*/baseline/judged.json")
        if "regressed" in each.read_text("utf-8")
    }
    run("--ldos-update-baseline", stack="noisy(3, planning=3.0)")
    report(regressed)
    assert verdicts("again.json") == verdicts()


def test_trials_without_a_saved_verdict_are_judged_by_the_present_baseline(project, record, run, verdicts):
    record()
    run("--ldos-report", "result.json", stack="noisy(2)")
    for judged in project.path.glob(".ldos/runs/*/baseline/judged.json"):
        judged.unlink()
    report()
    assert verdicts("again.json") == verdicts()
    assert "judged now, by the present baseline" in (project.path / "again.json").read_text("utf-8")
