"""Planted faults in the running stack: each moves the metric that it should. One run with several, one with the rest."""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path

import psutil
import pytest

from pytest_ldos import api
from pytest_ldos.host.cpu import THIEF
from pytest_ldos.measure.metrics.catalogue import load_metrics
from pytest_ldos.measure.trial.conduct import Observer
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.robot.stack.lines import PlantedFailure, TrialTag, plant_failure

pytestmark = pytest.mark.acceptance

EXAMPLE = Path(__file__).parents[3] / "examples/own_metric/conftest.py"
TRIALS = 3
FAILURE_RATE = 0.7
PLANNING_DELAY_MS = 40.0
TRANSPORT_DELAY_MS = 12.0
RATE_DROP = 0.2
STEAL = 0.3
OUTCOMES = {
    None: OutcomeClass.SUCCESS,
    PlantedFailure.PLANNER: OutcomeClass.PLANNING_FAILED,
    PlantedFailure.CONTROLLER: OutcomeClass.CONTROL_FAILED,
}


def measure(output: Path, trials: int, observer: api.Observer | None = None, **faults: float) -> api.TrialSet:
    spec = api.ScenarioSpec(
        name="baseline",
        trials=trials,
        warmup=0,
        stack=api.StackSpec(kind=api.StackKind.EMBEDDED, faults=api.FaultSpec(**faults)),
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LDOS_LOCK", f"ldos-test-{secrets.token_hex(8)}")
        found = api.run_trials(spec, output=output, own=load_metrics(str(EXAMPLE)), observer=observer)
    assert psutil.Process().children(recursive=True) == []
    return found


@pytest.fixture(scope="module")
def faulty(tmp_path_factory) -> api.TrialSet:
    return measure(
        tmp_path_factory.mktemp("faulty"),
        TRIALS,
        failure_rate=FAILURE_RATE,
        planning_delay_ms=PLANNING_DELAY_MS,
        control_rate_drop=RATE_DROP,
        transport_delay_ms=TRANSPORT_DELAY_MS,
    )


def values(trials: api.TrialSet, name: str) -> list[float]:
    found = [each.measurements[name].number for each in trials.trials if each.succeeded]
    assert found
    assert None not in found
    return [number for number in found if number is not None]


def test_injected_failures_follow_the_seeds(faulty):
    planted = [plant_failure(FAILURE_RATE, seed=each.seed, trial=TrialTag("", 0)) for each in faulty.trials]
    assert {PlantedFailure.PLANNER, PlantedFailure.CONTROLLER, None} == set(planted)
    assert [each.outcome for each in faulty.trials] == [OUTCOMES[failure] for failure in planted]
    for each, failure in zip(faulty.trials, planted, strict=True):
        assert ("planted fault" in each.message) == (failure is not None)
        assert (each.measurements["T2"].number is not None) == (failure is not PlantedFailure.PLANNER)


def test_arm_stopped_halfway_returns_home(faulty):
    """Every trial was made, from the same place."""
    assert len(faulty.trials) == TRIALS
    assert faulty.incomplete == ""


def test_the_planner_takes_longer(faulty):
    assert all(PLANNING_DELAY_MS < value < PLANNING_DELAY_MS + 60 for value in values(faulty, "T1"))


def test_control_loop_runs_at_the_reduced_rate(faulty):
    for each in faulty.trials:
        if each.succeeded:
            factor = each.measurements["T5"].details["real_time_factor"]
            assert each.measurements["T3"].details["mean_rate_hz"] / factor == pytest.approx(400, rel=0.03)
            assert each.measurements["T3"].number >= 0.5


def test_user_metric_shows_a_slow_path(faulty):
    assert [metric.name for metric in faulty.metrics][-1] == "state_age_p99"
    assert all(TRANSPORT_DELAY_MS < value < TRANSPORT_DELAY_MS + 30 for value in values(faulty, "state_age_p99"))


class ThiefWatch(Observer):
    """Share of a CPU that each thief took from the first goal to the end of the first trial."""

    def __init__(self) -> None:
        self.shares: list[float] = []
        self._began_s = 0.0
        self._had_s: dict[int, float] = {}

    def begin(self, spec: api.ScenarioSpec, *, trials: range, warmup: int) -> None:
        self._began_s = time.monotonic()
        self._had_s = taken_by_thieves()

    def trial(self, trial) -> None:
        lasted_s = time.monotonic() - self._began_s
        self.shares += [(taken - self._had_s.get(pid, 0.0)) / lasted_s for pid, taken in taken_by_thieves().items()]


def taken_by_thieves() -> dict[int, float]:
    """CPU seconds by pid."""
    times = {each.pid: each.cpu_times() for each in psutil.Process().children() if each.name() == THIEF}
    return {pid: taken.user + taken.system for pid, taken in times.items()}


def test_cpu_thief_makes_loops_irregular(tmp_path):
    """Thieves that come first for 3 of each 10 ms keep steps waiting for as long: the tails show them."""
    watch = ThiefWatch()
    robbed = measure(tmp_path, 1, watch, cpu_steal=STEAL)
    assert len(watch.shares) == len(os.sched_getaffinity(0))
    assert all(STEAL / 2 < share < STEAL * 1.3 for share in watch.shares), watch.shares
    (trial,) = robbed.trials
    for name in ("T3p99", "T5p99"):
        assert trial.measurements[name].number > 1.5, trial.measurements
