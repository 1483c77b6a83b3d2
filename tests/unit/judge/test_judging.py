"""A comparison is only as valid as the base's measurement."""

from __future__ import annotations

from pathlib import Path

from pytest_ldos.judge.baseline.store import Found
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.reasons import LoadNotReached, NotFinished, OfBase
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.judge.judging import Grounds, Judgement, judge, read_judgement, write_judgement
from pytest_ldos.measure.trial.artifacts import ScenarioFolder
from tests.builders.accepted import accepted
from tests.builders.trials import noisy_set

HEAD, BASE = noisy_set(1, session="one"), noisy_set(2, session="one")
REACHED, MISSED = {"summary": "load", "shortfall": ""}, {"summary": "load", "shortfall": "it reached 3 of 4"}


def decide_interleaved(head, base):
    return judge(head, Grounds(policy=Policy(), base=Found(base, Path("base/trials.json")))).result


def test_equal_versions_pass():
    assert decide_interleaved(HEAD, BASE).verdict is Verdict.PASSED


def test_load_missing_from_the_base_makes_the_run_invalid():
    result = decide_interleaved(
        noisy_set(1, session="one", loads=(REACHED,)), noisy_set(2, session="one", loads=(MISSED,))
    )
    assert result.verdict is Verdict.INVALID
    assert result.reasons[0] == OfBase(LoadNotReached("it reached 3 of 4"))
    assert result.more_trials_because == ()


def test_unfinished_base_makes_the_run_invalid():
    result = decide_interleaved(HEAD, noisy_set(2, session="one", incomplete="simulator was killed by SIGKILL"))
    assert result.verdict is Verdict.INVALID
    assert result.reasons[0] == OfBase(NotFinished("simulator was killed by SIGKILL"))


def test_dying_head_is_a_regression_with_any_base():
    """The session ended with it, so the base has fewer trials, too."""
    died = "head: simulator was killed by SIGKILL"
    result = decide_interleaved(
        noisy_set(1, session="one", failures=1, incomplete=died), noisy_set(2, session="one", incomplete=died)
    )
    assert result.verdict is Verdict.REGRESSED
    assert OfBase(NotFinished(died)) in result.reasons


def test_failed_trials_of_the_base_are_not_a_measurement_fault():
    result = decide_interleaved(HEAD, noisy_set(2, session="one", failures=3))
    assert result.verdict is not Verdict.INVALID


def test_faults_of_head_are_reported_first():
    result = decide_interleaved(
        noisy_set(1, session="one", loads=(MISSED,)), noisy_set(2, session="one", loads=(MISSED,))
    )
    assert result.verdict is Verdict.INVALID
    assert not isinstance(result.reasons[0], OfBase)


def test_judgement_keeps_what_was_accepted(tmp_path):
    policy = Policy(accepted={"T1": accepted("T1", 0.5)}, accepted_unreadable="it is damaged")
    kept = Judgement(
        grounds=Grounds(policy=policy, base=Found(BASE, Path("base"))), verdict=Verdict.PASSED, made_by="1"
    )
    write_judgement(ScenarioFolder(tmp_path), kept)
    assert read_judgement(ScenarioFolder(tmp_path)) == kept
