"""``ldos accept``: entries of a saved run, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ldos.judge.baseline.accepted import FILE, digest_difference, read_accepted
from pytest_ldos.judge.baseline.store import Found
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.judging import Grounds, Judgement, judge, write_judgement
from pytest_ldos.measure.trial.artifacts import ScenarioFolder, write_trials
from tests.builders.command_line import run_ldos
from tests.builders.repository import Repository
from tests.builders.trials import noisy_set

WHY = ("--reason", "it checks\tcollisions twice")


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Repository:
    made = Repository.create(tmp_path / "arm")
    made.git("config", "user.name", "Ada")
    (made.path / ".gitignore").write_text(".ldos\nhistory\n")
    made.commit(planner_txt="fast\n")
    made.commit(planner_txt="slow\n")
    monkeypatch.chdir(made.path)
    monkeypatch.setenv("COLUMNS", "160")
    return made


def save(repository, scenario="baseline", *, head="HEAD", base="HEAD~1", judged=True, **factors) -> None:
    """A run of head that is slower by the factors, with its verdict."""
    commits = [repository.git("rev-parse", "--short=12", name) if name[:4] == "HEAD" else name for name in (head, base)]
    trials = noisy_set(1, name=scenario, commit=commits[0], factors=factors)
    before = noisy_set(2, name=scenario, commit=commits[1])
    folder = ScenarioFolder(repository.path / ".ldos/runs/1" / scenario)
    write_trials(folder, trials)
    if judged:
        grounds = Grounds(policy=Policy(), base=Found(before, Path("base")))
        verdict = judge(trials, grounds).result.verdict
        write_judgement(folder, Judgement(grounds=grounds, verdict=verdict, made_by="test"))


def refusal(*arguments) -> str:
    ended = run_ldos("accept", "latest", *arguments)
    assert ended.returncode == 2, ended.stdout
    assert not Path(FILE).exists()
    return ended.stderr


def test_entries_are_of_scenarios_in_which_the_metric_regressed(repository):
    save(repository, T1=1.5)
    save(repository, "cpu_load", T1=1.5, T2x=2.0)
    save(repository, "msg_load")
    ended = run_ldos("accept", "latest", "T1", "T2x", *WHY)
    assert ended.returncode == 0, ended.stderr
    changes = read_accepted(repository.path)
    assert [(each.scenario, each.metric) for each in changes] == [
        ("baseline", "T1"),
        ("cpu_load", "T1"),
        ("cpu_load", "T2x"),
    ]
    assert changes[0].size == pytest.approx(0.5, abs=0.1)
    assert (changes[0].by, changes[0].reason) == ("Ada", "it checks collisions twice")
    assert changes[0].commit == repository.git("rev-parse", "--short=12", "HEAD")
    assert changes[0].difference == digest_difference(repository.path, changes[0].base, changes[0].commit)
    assert "baseline: accepted: T1 up to +" in ended.stdout
    assert f"commit {FILE} alone and merge it first" in ended.stdout


def test_one_scenario_can_be_named_by_its_folder(repository):
    save(repository, T1=1.5)
    save(repository, "cpu_load", T1=1.5)
    assert run_ldos("accept", ".ldos/runs/1/cpu_load", "T1", *WHY).returncode == 0
    assert [each.scenario for each in read_accepted(repository.path)] == ["cpu_load"]


def test_trials_of_another_machine_are_judged_again(repository):
    """As a CI's artifact has them: without a saved verdict."""
    folder = ScenarioFolder(repository.path / "trials/run-1/baseline")
    head, base = (repository.git("rev-parse", "--short=12", name) for name in ("HEAD", "HEAD~1"))
    write_trials(folder, noisy_set(1, commit=head, session="s", factors={"T1": 1.5}))
    write_trials(folder.base, noisy_set(2, commit=base, session="s"))
    assert run_ldos("accept", "trials/run-1", "T1", *WHY).returncode == 0
    assert [(each.commit, each.base) for each in read_accepted(repository.path)] == [(head, base)]


def test_unknown_metric_is_refused_with_the_nearest(repository):
    save(repository, T1=1.5)
    assert "unknown change for the worse of latest that can be accepted: 'T11'" in refusal("T11", *WHY)
    assert "did you mean 'T1'?" in refusal("T11", *WHY)


def test_metric_that_did_not_regress_is_refused(repository):
    save(repository, T1=1.5)
    error = refusal("T1", "T4", *WHY)
    assert "unknown change for the worse of latest that can be accepted: 'T4'" in error
    assert "known are: T1" in error


@pytest.mark.parametrize(
    ("saved", "error"),
    [
        ({"judged": False}, "latest has no change that can be accepted"),
        ({"head": "0123456789ab+"}, "and head 0123456789ab+"),
        ({"base": ""}, "git finds no difference between base unknown and head"),
        ({"base": "HEAD"}, "git finds no difference between"),
        ({"head": "ffffffffffff"}, "git finds no difference between"),
    ],
)
def test_run_that_cannot_be_accepted(repository, saved, error):
    save(repository, **saved, T1=1.5)
    assert error in refusal("T1", *WHY)


def test_reason_and_name_are_required(repository, monkeypatch):
    save(repository, T1=1.5)
    assert "--reason is empty" in refusal("T1", "--reason", " ")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    repository.git("config", "--unset", "user.name")
    assert "git does not know your name" in refusal("T1", *WHY)
