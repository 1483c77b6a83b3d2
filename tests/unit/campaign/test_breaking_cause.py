"""Stages that break first, and explanations."""

from __future__ import annotations

import dataclasses

from tests.builders.breaking import MadeUpStack, plan, search


def stage(result, name):
    return next(each for each in result.cause.stages if each.stage == name)


def test_stages_out_of_range_are_listed_first(tmp_path):
    result = search(MadeUpStack(slow_from=20, breaks_at=200), tmp_path)
    assert [each.stage for each in result.cause.stages][:2] == ["planning", "executor queue"]
    planning = stage(result, "planning")
    assert planning.first_left is not None
    assert planning.first_left >= 20
    assert 9 < planning.at_threshold.ratio < 11
    assert 4.5 < stage(result, "executor queue").at_threshold.ratio < 5.5
    for name in ("transport", "control loop", "simulation step"):
        assert stage(result, name).first_left is None


def test_stage_equally_long_in_sound_trials_is_not_blamed(tmp_path):
    """Planning is slow long before trials fail."""
    result = search(MadeUpStack(slow_from=2, breaks_at=200), tmp_path)
    assert stage(result, "planning").at_threshold.has_left
    assert result.cause.blamed is None


def test_stage_that_changes_at_the_threshold_is_blamed(tmp_path):
    result = search(MadeUpStack(slow_from=37, breaks_at=37), tmp_path)
    assert result.cause.blamed.stage == "planning"
    assert result.cause.blamed.separation == 1.0


def test_criterion_is_not_its_own_explanation(tmp_path):
    result = search(MadeUpStack(slow_from=37), tmp_path, plan("T1>3x"))
    assert stage(result, "planning").is_criterion
    assert result.cause.blamed.stage == "executor queue"
    assert result.cause.failed == 0


def test_failures_are_listed_with_their_messages(tmp_path):
    result = search(MadeUpStack(breaks_at=37, message="the goal tolerance was missed\nand more"), tmp_path)
    (failure,) = result.cause.failures
    assert (failure.outcome, failure.message, failure.count) == ("control_failed", "the goal tolerance was missed", 12)
    assert (result.cause.failed, result.cause.trials) == (12, 12)


def test_without_broken_levels_the_harshest_is_explained(tmp_path):
    result = search(MadeUpStack(slow_from=20), tmp_path)
    assert stage(result, "planning").at_threshold.level == 1000
    assert stage(result, "planning").separation is None


def test_stack_without_paths_has_fewer_stages(tmp_path):
    class Bare(MadeUpStack):
        def measure(self, spec):
            trials = super().measure(spec)
            bare = (dataclasses.replace(each, segments_ns={}) for each in trials.trials)
            return dataclasses.replace(trials, trials=tuple(bare))

    result = search(Bare(breaks_at=37), tmp_path)
    assert {each.stage for each in result.cause.stages} == {"planning", "control loop", "simulation step"}
