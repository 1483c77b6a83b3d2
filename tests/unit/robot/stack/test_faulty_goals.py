"""Goals that fail with planted failures."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from pytest_ldos.robot.stack.goals import REACH
from pytest_ldos.robot.stack.lines import PlantedFailure, TrialTag, parse_command, plant_failure
from pytest_ldos.robot.stack.senders import to_command
from pytest_ldos.scenario.model import StackSpec

TRIAL = TrialTag("baseline", 0)


def failing(rate: float, seeds=range(1, 1001)) -> dict[int, PlantedFailure]:
    found = {seed: plant_failure(rate, seed=seed, trial=TRIAL) for seed in seeds}
    return {seed: failure for seed, failure in found.items() if failure is not None}


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.8])
def test_goals_fail_at_the_rate_equally_by_both_causes(rate):
    found = failing(rate)
    assert len(found) / 1000 == pytest.approx(rate, abs=0.03)
    counts = Counter(found.values())
    assert counts[PlantedFailure.PLANNER] / len(found) == pytest.approx(0.5, abs=0.1)
    assert sum(counts.values()) == len(found)


def test_same_goals_fail_in_every_run_and_at_higher_rates():
    assert failing(0.3) == failing(0.3)
    assert failing(0.1).items() <= failing(0.3).items()
    assert failing(0.0) == {}
    assert len(failing(1.0)) == 1000


def test_failures_without_a_seed_are_random():
    found = {plant_failure(0.5, seed=None, trial=TRIAL) for _ in range(200)}
    assert found == {None, *PlantedFailure}


def test_the_way_home_never_fails():
    assert {plant_failure(1.0, seed=seed, trial=None) for seed in range(100)} == {None}


def test_command_has_a_failure_only_if_injected():
    """The clients of real stacks know no such key."""
    plain = to_command(StackSpec(), REACH, goal_id="0" * 32, seed=1, trial=TRIAL, start=None)
    assert "failure" not in json.loads(plain.to_line())
    assert parse_command(plain.to_line()) == plain
