"""Durations of the phases of a run."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace

import pytest

from pytest_ldos.measure.trial.artifacts import ScenarioFolder
from pytest_ldos.measure.trial.conduct import Procedure, add_trials, new_record
from pytest_ldos.measure.trial.rig import (
    DURATIONS_FILE,
    PhaseClock,
    RunPhase,
    Spent,
    clocked,
    describe_durations,
    read_durations,
    write_durations,
)
from pytest_ldos.robot.stack.goals import PANDA_GOALS
from pytest_ldos.scenario.model import ScenarioSpec, StackSpec
from tests.fakes.rig import FakeRecorder, open_fake_rig


class Ticking:
    """A clock that advances by a second at each reading."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        self.now_s += 1.0
        return self.now_s


def test_phases_are_consecutive_and_none_stops_the_clock():
    clock = PhaseClock(Ticking())
    for phase in (RunPhase.STARTING, RunPhase.TRIALS, RunPhase.HOMING, RunPhase.TRIALS, None, RunPhase.STOPPING, None):
        clock.enter(phase)
    assert clock.durations == {
        RunPhase.STARTING: Spent(1, 1.0),
        RunPhase.TRIALS: Spent(2, 2.0),
        RunPhase.HOMING: Spent(1, 1.0),
        RunPhase.STOPPING: Spent(1, 1.0),
    }
    assert (
        describe_durations(clock.durations, 5.5)
        == "starting 1.0 s, trials 2.0 s, homing 1.0 s, stopping 1.0 s, other 0.5 s"
    )


def test_start_and_end_of_a_failed_stack_count():
    clock = PhaseClock(Ticking())

    @contextmanager
    def stack():
        try:
            yield "running"
        finally:
            assert clock.durations[RunPhase.STOPPING].times == 1

    with pytest.raises(KeyError), clocked(stack(), clock) as running:
        raise KeyError(running)
    assert clock.durations == {RunPhase.STARTING: Spent(1, 1.0), RunPhase.STOPPING: Spent(1, 1.0)}


def test_failed_start_counts_as_a_start():
    clock = PhaseClock(Ticking())

    @contextmanager
    def stack():
        raise KeyError
        yield

    with pytest.raises(KeyError), clocked(stack(), clock):
        pass
    assert clock.durations == {RunPhase.STARTING: Spent(1, 1.0)}


def test_trials_are_counted_by_phase(tmp_path):
    folder = ScenarioFolder(tmp_path / "scenario")
    folder.logs.mkdir(parents=True)
    spec = ScenarioSpec(name="baseline", trials=3)
    clock = PhaseClock()
    with clocked(open_fake_rig(StackSpec(), folder), clock) as rig:
        procedure = Procedure(goals=PANDA_GOALS.sets["reach"], clock=clock)
        add_trials(rig, new_record(rig, spec), procedure, until=3, warmup=2, save=lambda record: None)
    assert {phase: spent.times for phase, spent in clock.durations.items()} == {
        RunPhase.STARTING: 1,
        RunPhase.WARM_UP: 2,
        RunPhase.LOADS: 1,
        RunPhase.TRIALS: 3,
        RunPhase.HOMING: 3,
        RunPhase.READING: 1,
        RunPhase.STOPPING: 1,
    }


def run_of_two(tmp_path, *, starts_afresh, is_last):
    folder = ScenarioFolder(tmp_path / "scenario")
    folder.logs.mkdir(parents=True)
    with open_fake_rig(StackSpec(), folder) as rig:
        rig.stack.info = replace(rig.stack.info, starts_afresh=starts_afresh)
        record = new_record(rig, ScenarioSpec(name="baseline", trials=2))
        procedure = Procedure(goals=PANDA_GOALS.sets["reach"])
        add_trials(rig, record, procedure, until=2, warmup=0, save=lambda record: None, is_last=is_last)
    return rig.stack.goals


def test_simulated_arm_does_not_go_home_after_the_last_trial_of_a_start(tmp_path):
    assert run_of_two(tmp_path, starts_afresh=True, is_last=True) == ["reach", "home", "reach"]


@pytest.mark.parametrize(("starts_afresh", "is_last"), [(False, True), (True, False)])
def test_arm_goes_home_for_later_trials(tmp_path, starts_afresh, is_last):
    goals = run_of_two(tmp_path, starts_afresh=starts_afresh, is_last=is_last)
    assert goals == ["reach", "home", "reach", "home"]


@pytest.mark.parametrize(("is_last", "resumed"), [(False, 1), (True, 0)])
def test_recording_stays_paused_after_the_last_trials(tmp_path, monkeypatch, is_last, resumed):
    calls = []
    monkeypatch.setattr(FakeRecorder, "resume", lambda recorder: calls.append("resume"))
    folder = ScenarioFolder(tmp_path / "scenario")
    folder.logs.mkdir(parents=True)
    with open_fake_rig(StackSpec(), folder) as rig:
        record = new_record(rig, ScenarioSpec(name="baseline", trials=1))
        procedure = Procedure(goals=PANDA_GOALS.sets["reach"])
        add_trials(rig, record, procedure, until=1, warmup=0, save=lambda record: None, is_last=is_last)
    assert len(calls) == resumed


def test_durations_round_trip(tmp_path):
    durations = {RunPhase.STARTING: Spent(10, 45.25), RunPhase.TRIALS: Spent(20, 75.0)}
    write_durations(ScenarioFolder(tmp_path), durations, stack="embedded")
    assert read_durations(tmp_path / DURATIONS_FILE) == ("embedded", durations)
    assert json.loads((tmp_path / DURATIONS_FILE).read_text())["phases"]["starting"] == {"times": 10, "seconds": 45.25}
