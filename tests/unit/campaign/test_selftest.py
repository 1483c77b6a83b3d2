"""Injection of known faults."""

from __future__ import annotations

import dataclasses
import math

import pytest

from pytest_ldos.base.errors import BringUpFailed, ConfigurationError, SelfTestFailed
from pytest_ldos.base.series import Missing
from pytest_ldos.campaign.detection import FAULTS, SUCCESS, Keeping, is_trustworthy, with_failures
from pytest_ldos.campaign.noise import plant
from pytest_ldos.campaign.selftest import plan_self_test, run_self_test
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.scenario.model import ScenarioSpec, StackSpec
from pytest_ldos.scenario.words import StackKind
from pytest_ldos.show.report.reasons import describe_reason
from tests.builders.trials import TYPICAL, failed_trial, noisy_set, trial_set

SPEC = ScenarioSpec(name="baseline", trials=10)
MEDIANS = {"T1": 10.0, "T3": 0.1}


def plan(**asked):
    return plan_self_test(SPEC, StackKind.EMBEDDED, **asked)


class Stack:
    """Simulates its faults: T1 increases by a delay, T3 by a lower rate; failures at a rate."""

    def __init__(self, *, deaf=False, broken=(), wolf=False):
        self.deaf, self.broken, self.wolf = deaf, broken, wolf
        self.made = []

    def __call__(self, spec, block, what):
        self.made.append(what)
        faults = spec.stack.faults
        if any(getattr(faults, name) for name in self.broken):
            raise BringUpFailed("the stack was not ready", remedy="look at the logs")
        trials = noisy_set(block, n=spec.trials, stack_kind="of nobody")
        blocked = tuple(dataclasses.replace(each, block=block) for each in trials.trials)
        trials = dataclasses.replace(trials, trials=blocked, spec=spec)
        if self.wolf and block == 1:
            trials = plant(trials, "T5", 3.0)
        if self.deaf:
            return trials
        trials = plant(trials, "T1", faults.planning_delay_ms / TYPICAL["T1"])
        longer = faults.control_rate_drop / (1 - faults.control_rate_drop) * 2
        trials = plant(trials, "T3", math.hypot(TYPICAL["T3"], longer) / TYPICAL["T3"] - 1)
        failing = round(faults.failure_rate * spec.trials)
        return with_failures(trials, [number < failing for number in range(spec.trials)])


def self_tested(stack, **asked):
    return run_self_test(plan(**asked), stack, lambda base: Policy(), describe=describe_reason, draws=20)


def test_all_faults_are_injected_by_default():
    assert {point.fault.name for point in plan().points} == set(FAULTS)
    assert plan().starts == 3 + sum(len(fault.sizes) for fault in FAULTS.values())
    quick = plan(quick=True)
    assert [point.fault.name for point in quick.points] == ["planning_delay", "control_rate_drop", "dropped_goals"]
    assert [point.size for point in plan(faults=["cpu_steal"], quick=True).points] == [0.8]
    assert plan(sizes=[0.0]).points == ()
    assert [point.size for point in plan(faults=["cpu_steal"], sizes=[0.3, 0.0, 0.1]).points] == [0.1, 0.3]


@pytest.mark.acceptance
def test_faults_of_the_size_of_the_mde_are_found():
    stack = Stack()
    result = self_tested(stack, faults=["planning_delay", "control_rate_drop", "dropped_goals"])
    found = {(each.fault, each.size): each for each in result.detections}
    assert stack.made[:2] == ["no fault", "no fault, as another version"]
    assert stack.made[-1] == "no fault"
    assert "planner delay (share of T1) 15 %" in stack.made
    assert len(result.base.trials) == 20
    assert found["none", 0].keeping is Keeping.KEPT
    assert found["planning_delay", 0.6].seen_by == ("T1",)
    assert found["planning_delay", 0.6].promised.effect == 0.6
    assert found["control_rate_drop", 0.2].seen_by == ("T3",)
    assert found["dropped_goals", 0.6].seen_by[0] == SUCCESS
    assert is_trustworthy(result.detections)


def test_gate_without_findings_breaks_its_promise():
    result = self_tested(Stack(deaf=True), faults=["planning_delay"], sizes=[3.0])
    assert [each.keeping for each in result.detections] == [Keeping.KEPT, Keeping.BROKEN]


def test_false_alarm_is_noticed():
    result = self_tested(Stack(wolf=True), faults=["planning_delay"], sizes=[0.6])
    assert result.detections[0].keeping is Keeping.FALSE_ALARM


def test_failed_start_with_a_fault_does_not_end_the_test():
    result = self_tested(Stack(broken=["cpu_steal"]), faults=["cpu_steal", "planning_delay"], sizes=[0.8])
    found = {each.fault: each for each in result.detections}
    assert "was not ready" in found["cpu_steal"].problem
    assert (found["cpu_steal"].verdict, found["cpu_steal"].is_found) == (Verdict.INFRA, False)
    assert found["planning_delay"].is_found


def test_failed_last_start_keeps_results():
    stack = Stack()

    def measure(spec, block, what):
        if block == 3:
            raise BringUpFailed("the stack was not ready")
        return stack(spec, block, what)

    result = self_tested(measure, faults=["planning_delay"], sizes=[3.0])
    assert len(result.base.trials) == 10
    assert result.detections[1].is_found
    assert "only the first counts: the stack was not ready" in result.notes[0]


def test_version_without_faults_must_work():
    with pytest.raises(BringUpFailed):
        self_tested(
            lambda spec, block, what: Stack(broken=["failure_rate"])(
                dataclasses.replace(spec, stack=failing()), block, what
            )
        )
    with pytest.raises(SelfTestFailed, match="no trial succeeded: no joints bring"):
        self_tested(lambda spec, block, what: trial_set([failed_trial(0)]))
    with pytest.raises(SelfTestFailed, match="the arm could not return home"):
        self_tested(lambda spec, block, what: trial_set([], incomplete="the arm could not return home"))


def failing():
    faults = dataclasses.replace(StackSpec().faults, failure_rate=1.0)
    return dataclasses.replace(StackSpec(), faults=faults)


def test_faults_set_their_fields():
    stack = StackSpec()
    of = {name: fault.in_stack(stack, fault.sizes[0], MEDIANS).faults for name, fault in FAULTS.items()}
    assert of["planning_delay"].planning_delay_ms == pytest.approx(1.5)
    assert of["control_rate_drop"].control_rate_drop == 0.02
    assert of["transport_delay"].transport_delay_ms == 1.0
    assert of["dropped_goals"].failure_rate == 0.1
    assert of["cpu_steal"].cpu_steal == 0.2
    assert all(fault.in_stack(stack, 0.0, MEDIANS) == stack for fault in FAULTS.values())


def test_known_effects():
    stack = StackSpec()
    assert FAULTS["planning_delay"].known(0.3, MEDIANS, stack).effect == 0.3
    # 500 Hz less a fifth: 0.5 ms longer each; the root mean square of 0.1 and 0.5 is 0.51.
    assert FAULTS["control_rate_drop"].known(0.2, MEDIANS, stack).effect == pytest.approx(math.sqrt(0.26) / 0.1 - 1)
    assert FAULTS["control_rate_drop"].known(0.2, {}, stack) is None
    assert FAULTS["cpu_steal"].known(0.5, MEDIANS, stack) is None


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"faults": ["planing_delay"]}, r"unknown fault 'planing_delay'\n.*did you mean 'planning_delay'"),
        ({"faults": ["dropped_goals"], "sizes": [1.5]}, "dropped_goals of 150 % makes no sense"),
        ({"faults": ["cpu_steal"], "sizes": [-0.1]}, "makes no sense"),
    ],
)
def test_unsupported_faults_are_refused(asked, message):
    with pytest.raises(ConfigurationError, match=message):
        plan(**asked)


def test_ros_2_stack_gets_faults_without_patches():
    made = plan_self_test(SPEC, StackKind.ROS2)
    assert {point.fault.name for point in made.points} == {
        "planning_delay",
        "control_rate_drop",
        "callback_delay",
        "dropped_goals",
        "cpu_steal",
    }
    assert "transport_delay" in made.notes[0]
    possible = "planning_delay, control_rate_drop, callback_delay, dropped_goals, cpu_steal"
    with pytest.raises(ConfigurationError, match=rf"without patching them\n.*{possible}"):
        plan_self_test(SPEC, StackKind.ROS2, faults=["transport_delay"])


def test_missing_median_is_an_error():
    """Without T1, a share of it is undefined."""

    def measure(spec, block, what):
        trials = noisy_set(block)
        return dataclasses.replace(
            trials,
            trials=tuple(
                dataclasses.replace(
                    each,
                    measurements={
                        **each.measurements,
                        "T1": dataclasses.replace(each.measurements["T1"], value=Missing("no planner")),
                    },
                )
                for each in trials.trials
            ),
        )

    with pytest.raises(SelfTestFailed, match="T1"):
        run_self_test(plan(faults=["planning_delay"]), measure, lambda base: Policy(), describe=describe_reason)
