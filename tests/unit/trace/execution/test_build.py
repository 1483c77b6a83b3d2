"""Building an execution model from a trace."""

from __future__ import annotations

from functools import partial

import pytest

from pytest_ldos.base.ros2 import Phase
from pytest_ldos.robot.stack.goals import REACH, ErrorCode
from pytest_ldos.robot.stack.lines import TrialTag
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.build import NEEDED_EVENTS, build_execution
from tests.fakes.rig import EPOCH_NS, MS, PHASE, PID, SPEED, STEP, FakeRecorder, FakeStack, Motion


@pytest.fixture
def recorder(tmp_path):
    return FakeRecorder(tmp_path / "trace")


def model_of(recorder, **options):
    recorder.pause()
    return build_execution(read_trace(recorder.directory, events=NEEDED_EVENTS), **options)


def run(recorder, *motions):
    stack = FakeStack(recorder, lambda index: motions[index])
    return [
        stack.move(REACH, goal_id=f"{index:032x}", seed=1, trial=TrialTag("baseline", index))
        for index in range(len(motions))
    ]


def test_trials_have_their_phases_plan_and_end(recorder):
    outcomes = run(
        recorder, Motion(planning_ms=10, planned_ms=50, settle_ms=5), Motion(error_code=ErrorCode.NO_IK_SOLUTION)
    )
    model = model_of(recorder)
    good, bad = model.trials.values()
    assert (good.scenario, good.index, good.error_code) == ("baseline", 0, ErrorCode.SUCCESS)
    assert {phase: time - EPOCH_NS for phase, time in good.phases.items()} == outcomes[0].stamps_ns
    assert good.plan.duration_ns == 50 * MS
    assert good.end_ns > good.phases[Phase.RESULT]
    assert (bad.index, bad.error_code, bad.plan) == (1, ErrorCode.NO_IK_SOLUTION, None)
    assert Phase.EXECUTING not in bad.phases


def test_plan_requests_belong_to_the_preceding_trial(recorder):
    stack = FakeStack(recorder, lambda index: Motion(planning_ms=10))
    send = partial(stack.move, REACH, seed=1)
    send(goal_id="e" * 32, trial=None, plan_only=True)
    for index in range(2):
        send(goal_id=f"{index:032x}", trial=TrialTag("baseline", index))
        recorder.emit(SPEED, stack.now_ns, work_ns=7 + index)
        send(goal_id=f"{index:031x}e", trial=None, plan_only=True)
    send(goal_id="d" * 32, trial=None, plan_only=True)
    model = model_of(recorder)
    first, second = model.trials.values()
    assert [(each.end_ns - each.begin_ns, each.cpu_work_ns) for each in first.plan_requests] == [(10 * MS, 7)]
    assert [each.cpu_work_ns for each in second.plan_requests] == [8, None]
    assert set(model.phases["goal_id"]) == set(model.trials)


def test_goal_without_plan_is_no_plan_request(recorder):
    for number, phase in enumerate((Phase.GOAL_SENT, Phase.PLANNING, Phase.RESULT)):
        recorder.emit(PHASE, number * MS, goal_id="a" * 32, phase=phase.value)
    assert model_of(recorder).plan_requests.is_empty()


def test_trial_without_end(recorder):
    run(recorder, Motion(error_code=None))
    (trial,) = model_of(recorder).trials.values()
    assert (trial.end_ns, trial.error_code) == (None, None)


def test_cpu_speed_is_taken_before_planning_ends(recorder):
    timed, failed, untimed = run(recorder, Motion(), Motion(error_code=ErrorCode.PLANNING_FAILED), Motion())
    sent, planned = (timed.stamps_ns[phase] for phase in (Phase.GOAL_SENT, Phase.EXECUTING))
    for time_ns, work_ns in ((sent - 1, 1), (sent, 2), (planned, 3), (planned + 1, 4)):
        recorder.emit(SPEED, time_ns, work_ns=work_ns)
    recorder.emit(SPEED, failed.stamps_ns[Phase.RESULT], work_ns=5)
    model = model_of(recorder)
    assert [model.trials[each.goal_id].cpu_work_ns for each in (timed, failed, untimed)] == [3, 5, None]


def test_first_entry_of_a_phase_counts(recorder):
    """MoveGroup sends PLANNING twice."""
    (outcome,) = run(recorder, Motion())
    first = outcome.stamps_ns[Phase.PLANNING]
    recorder.emit(PHASE, first + 3 * MS, goal_id=outcome.goal_id, phase="planning")
    recorder.emit(PHASE, first + 4 * MS, goal_id=outcome.goal_id, phase="dancing")
    (trial,) = model_of(recorder).trials.values()
    assert trial.phases[Phase.PLANNING] - EPOCH_NS == first


def test_only_observed_processes_are_included(recorder):
    run(recorder, Motion())
    steps = len(model_of(recorder).sim_steps)
    recorder.emit(STEP, 2_000 * MS, step=999, sim_time_ns=999)
    recorder.records[-1].context = {"_vpid": PID + 1, "_vtid": 1}
    assert len(model_of(recorder).sim_steps) == steps + 1
    observed = model_of(recorder, pids=[PID])
    assert len(observed.sim_steps) == steps
    assert model_of(recorder, pids=[1]).trials == {}


def test_publications_of_a_real_stack_by_topic(golden):
    """Counts equal a manual count of the recorded reach, without the ROS daemon."""
    trace = read_trace(golden("panda_baseline_1"), events=NEEDED_EVENTS)
    model = build_execution(trace)
    counts = {topic: len(model.publication_times_ns(topic)) for topic in model.topics()}
    assert counts["/joint_states"] == 2301
    assert counts["/tf"] == 91
    assert counts["/panda_arm_controller/follow_joint_trajectory/_action/feedback"] == 38
    assert counts["/move_action/_action/feedback"] == 4
    assert model.publications["time_ns"].is_sorted()
    assert model.trials == {}


def test_a_trace_without_any_known_event(recorder):
    model = model_of(recorder)
    assert model.trials == {}
    assert {name: len(frame) for name, frame in model.frames().items() if len(frame)} == {"hosts": 1}
