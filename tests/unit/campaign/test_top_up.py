"""Trials that are added on a running stack."""

from __future__ import annotations

import pytest

from pytest_ldos.campaign.top_up import top_up
from pytest_ldos.measure.trial.artifacts import ScenarioFolder
from pytest_ldos.measure.trial.conduct import Procedure, add_trials, new_record
from pytest_ldos.measure.trial.record import Look
from pytest_ldos.robot.stack.goals import GOAL_SETS
from pytest_ldos.scenario.model import ScenarioSpec, StackSpec
from tests.builders.trials import noisy_set
from tests.fakes.bench import Undecided
from tests.fakes.rig import TYPICAL, Motion, open_fake_rig

BASE = noisy_set(1, n=8)
PROCEDURE = Procedure(goals=GOAL_SETS["reach"])


def run(path, *, looks, trials=4, max_trials=12, script=TYPICAL, discarded=0):
    """The trials, what the decision was shown, and what was saved last."""
    folder = ScenarioFolder(path / "scenario")
    folder.logs.mkdir(parents=True)
    saved, decide = [], Undecided(looks)
    spec = ScenarioSpec(name="baseline", trials=trials, max_trials=max_trials)
    with open_fake_rig(StackSpec(), folder, script=script, discarded=discarded) as rig:
        first = add_trials(rig, new_record(rig, spec), PROCEDURE, until=trials, warmup=0, save=saved.append)
        made = top_up(rig, first, PROCEDURE, base=8, size=3, decide=lambda head: decide(head, BASE), save=saved.append)
    return made, [head for head, _ in decide.shown], saved[-1]


def test_a_clear_case_gets_none(tmp_path):
    made, shown, saved = run(tmp_path, looks=1)
    assert (len(made.trials), shown) == (4, [4])
    assert made.looks == (Look(4, 8),)
    assert made.last_look == Look(12, 8)
    assert saved == made


def test_an_undecided_one_gets_trials_until_it_is_clear(tmp_path):
    made, shown, saved = run(tmp_path, looks=3)
    assert shown == [4, 7, 10]
    assert [trial.index for trial in made.trials] == list(range(10))
    assert {trial.block for trial in made.trials} == {0}
    assert all(trial.measurements["T1"].number for trial in made.trials)
    assert saved == made


def test_it_ends_at_the_most(tmp_path):
    made, shown, _ = run(tmp_path, looks=99)
    assert len(made.trials) == 12
    assert shown == [4, 7, 10]
    assert [look.head for look in made.looks] == [4, 7, 10, 12]


@pytest.mark.parametrize("most", [0, 4])
def test_what_is_not_to_be_extended_is_not_looked_at(tmp_path, most):
    made, shown, _ = run(tmp_path, looks=99, max_trials=most)
    assert (len(made.trials), shown, made.looks, made.last_look) == (4, [], (), None)


def test_a_stack_that_died_gets_no_more(tmp_path):
    death = Motion(error_code=None, message="killed")
    made, shown, _ = run(tmp_path, looks=99, script=lambda index: death if index == 5 else Motion())
    assert len(made.trials) == 6
    assert shown == [4]


def test_the_tracers_own_count_is_not_added_up(tmp_path):
    """It counts from the stack's start on."""
    made, _, _ = run(tmp_path, looks=3, discarded=5)
    assert made.discarded_events == 5
