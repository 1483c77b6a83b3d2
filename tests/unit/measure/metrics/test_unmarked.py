"""Goals without markers: phases from publications."""

from __future__ import annotations

from pytest_ldos.base.ros2 import Phase
from pytest_ldos.base.series import Invalid, Missing
from pytest_ldos.measure.metrics.extract import extract_metrics, extract_trial, find_trial
from pytest_ldos.measure.metrics.model import FEEDBACK, FEEDBACK_AND_STATUS, STATUS, Interfaces, find_unmarked
from pytest_ldos.trace.execution.goals import find_action_goals
from tests.builders.ros2 import Recording

MS = 1_000_000
PERIOD = 2 * MS
ACTION = "/move_action"
CONTROLLER = "/arm_controller/follow_joint_trajectory"


class Arm:
    """MoveGroup and a controller: an executor that accepts goals, and one thread per goal."""

    def __init__(self, action: str = ACTION, *, controller: bool = True) -> None:
        self.recording = Recording()
        process = self.recording.process(name="move_group")
        node = process.node("move_group")
        self.status, self.feedback = (node.publisher(f"{action}/_action/{each}") for each in ("status", "feedback"))
        self.executor, self.process = process.thread(1), process
        other = self.recording.process(2, name="control")
        self.controller = other.node("arm_controller").publisher(
            f"{CONTROLLER if controller else '/arm'}/_action/status"
        )
        self.loop = other.thread(2)

    def accept(self, at_ms: float) -> None:
        self.executor.at(int(at_ms * MS)).publish(self.status)

    def control(self, at_ms: float) -> None:
        self.loop.at(int(at_ms * MS)).publish(self.controller)

    def goal(self, at_ms: float, *, tid: int, monitor_ms: float | None = 12, result_ms: float = 100) -> None:
        """A goal that is accepted after 1 ms and planned from 2 ms on; times relative to `at_ms`."""
        worker = self.process.thread(tid)
        self.accept(at_ms + 1)
        for feedback_ms in (2, 3, *(() if monitor_ms is None else (monitor_ms,))):
            worker.at(int((at_ms + feedback_ms) * MS)).publish(self.feedback)
        if monitor_ms is not None:
            self.control(at_ms + monitor_ms + 2)
            self.control(at_ms + result_ms - 1)
        worker.at(int((at_ms + result_ms) * MS)).publish(self.status)
        worker.at(int((at_ms + result_ms) * MS) + 100_000).publish(self.feedback)

    def spans(self, action: str = ACTION):
        return list(find_unmarked(self.recording.model(), action).values())

    def measure(self, **options):
        (measured,) = extract_metrics(self.recording.model(), nominal_period_ns=PERIOD, **options).values()
        return measured.measurements


def in_ms(span) -> dict[str, int]:
    return {phase.value: time // MS for phase, time in span.phases.items()}


def test_phases_of_a_goal():
    arm = Arm()
    arm.goal(1000, tid=9)
    (span,) = arm.spans()
    assert in_ms(span) == {"goal_accepted": 1001, "planning": 1002, "executing": 1012, "result": 1100}
    assert span.goal_id == "/move_action 1"
    assert not span.marked
    assert span.error_code is None
    assert span.plan is None


def test_metrics_of_a_goal_name_their_sources():
    arm = Arm()
    arm.goal(1000, tid=9)
    measured = arm.measure()
    assert {name: (round(measured[name].number), measured[name].source) for name in ("T1", "T2", "T4")} == {
        "T1": (10, FEEDBACK),
        "T2": (88, FEEDBACK_AND_STATUS),
        "T4": (99, STATUS),
    }
    assert [name for name in ("T1", "T2", "T4") if measured[name].source.is_approximate] == ["T4"]
    assert measured["T2x"].value == Missing("no marker tells how long the planned trajectory lasts")
    assert measured["T3"].value == Missing(
        "the trace has no control cycles, nor joint states on /joint_states meanwhile"
    )
    assert "no simulator" in measured["T5"].value.reason


def test_unplanned_goal_has_no_execution():
    arm = Arm()
    arm.goal(1000, tid=9, monitor_ms=None)
    measured = arm.measure()
    assert measured["T1"].value == Missing("the trial never entered phase 'executing'")
    assert measured["T4"].number is not None


def test_without_controller_begin_of_execution_is_unknown():
    arm = Arm(controller=False)
    arm.goal(1000, tid=9)
    measured = arm.measure()
    reason = "no action of a controller is in the trace, which would tell when execution began"
    assert measured["T1"].value == measured["T2"].value == measured["T3"].value == Missing(reason)
    assert measured["T4"].number is not None


def test_consecutive_goals_with_and_without_reused_threads():
    arm = Arm()
    for number, tid in enumerate((9, 10, 10, 9)):
        arm.goal(1000 + 200 * number, tid=tid)
    assert [in_ms(span)["planning"] for span in arm.spans()] == [1002, 1202, 1402, 1602]
    assert all(in_ms(span)["result"] - in_ms(span)["executing"] == 88 for span in arm.spans())


def test_idle_feedback_after_the_next_acceptance_begins_no_goal():
    arm = Arm()
    first, second = arm.process.thread(9), arm.process.thread(10)
    arm.accept(1000)
    first.at(1001 * MS).publish(arm.feedback)
    first.at(1100 * MS).publish(arm.status)
    arm.accept(1101)
    first.at(1102 * MS).publish(arm.feedback)
    second.at(1103 * MS).publish(arm.feedback)
    second.at(1200 * MS).publish(arm.status)
    goals = find_action_goals(arm.recording.model(), ACTION)
    assert [[goal.accepted_ns // MS, goal.feedback_ns[0] // MS, goal.result_ns // MS] for goal in goals] == [
        [1000, 1001, 1100],
        [1101, 1103, 1200],
    ]


def test_a_request_to_cancel_is_neither_an_end_nor_a_goal():
    arm = Arm()
    worker = arm.process.thread(9)
    arm.accept(1000)
    worker.at(1001 * MS).publish(arm.feedback)
    arm.accept(1050)  # canceling, on the executor's thread like an acceptance
    worker.at(1060 * MS).publish(arm.status)
    arm.goal(2000, tid=10)
    spans = arm.spans()
    assert [span.end_ns // MS for span in spans] == [1060, 2100]
    assert [in_ms(span)["goal_accepted"] for span in spans] == [1000, 2001]


def test_a_second_plan_of_a_goal_does_not_move_the_first():
    arm = Arm()
    worker = arm.process.thread(9)
    arm.accept(1000)
    for at in (1001, 1002, 1020):
        worker.at(at * MS).publish(arm.feedback)
    arm.control(1022)
    arm.control(1030)
    for at in (1031, 1050):
        worker.at(at * MS).publish(arm.feedback)
    arm.control(1052)
    worker.at(1200 * MS).publish(arm.status)
    (span,) = arm.spans()
    assert in_ms(span)["executing"] == 1020


def test_running_goal_has_no_result():
    arm = Arm()
    arm.accept(1000)
    arm.process.thread(9).at(1001 * MS).publish(arm.feedback)
    measured = arm.measure()
    assert measured["T4"].value == Missing("the trial never entered phase 'result'")


def test_goal_older_than_the_trace_has_reasons_instead_of_metrics():
    arm = Arm()
    worker = arm.process.thread(9)
    worker.at(1001 * MS).publish(arm.feedback)
    worker.at(1100 * MS).publish(arm.status)
    worker.at(1101 * MS).publish(arm.feedback)
    reason = "that the goal was accepted is not in the trace"
    assert {each.value for each in arm.measure().values()} == {Missing(reason)}
    arm.goal(2000, tid=9)
    assert [in_ms(span) for span in arm.spans()][1]["planning"] == 2002
    assert len(arm.spans()) == 2


def test_acceptance_may_follow_the_first_feedback():
    arm = Arm()
    for at in (1000, 3000):
        worker = arm.process.thread(at)
        worker.at((at + 1) * MS).publish(arm.feedback)
        arm.accept(at + 2)
        worker.at((at + 10) * MS).publish(arm.feedback)
        arm.control(at + 12)
        worker.at((at + 100) * MS).publish(arm.status)
    first, second = arm.spans()
    assert in_ms(first) == {"goal_accepted": 1002, "planning": 1001, "executing": 1010, "result": 1100}
    assert in_ms(second)["goal_accepted"] == 3002
    assert first.begin_ns // MS == 1001


def test_early_or_late_status_is_no_acceptance():
    arm = Arm()
    arm.accept(1000)
    for at in (2500, 2600):
        arm.process.thread(9).at(at * MS).publish(arm.feedback)
    arm.accept(2601)
    arm.process.thread(9).at(2700 * MS).publish(arm.status)
    (span,) = arm.spans()
    assert in_ms(span) == {"result": 2700}


def test_action_name_is_configurable():
    arm = Arm("/left/move_action")
    arm.goal(1000, tid=9)
    assert arm.spans() == []
    assert len(arm.spans("/left/move_action")) == 1
    assert arm.measure(interfaces=Interfaces(action="/left/move_action"))["T1"].number is not None


def stamps(sent_ms, planning_ms, executing_ms, result_ms, *, clock_ms=500):
    """A client's stamps, on a clock `clock_ms` behind the trace's."""
    phases = (Phase.GOAL_SENT, Phase.PLANNING, Phase.EXECUTING, Phase.RESULT)
    times_ms = (sent_ms, planning_ms, executing_ms, result_ms)
    return {phase.value: round((time - clock_ms) * MS) for phase, time in zip(phases, times_ms, strict=True)}


def test_goal_is_found_and_checked_by_client_stamps():
    arm = Arm()
    arm.goal(1000, tid=9)
    arm.goal(1200, tid=10)
    model = arm.recording.model()

    def measure(given):
        trial = find_trial("f" * 32, model, stamps_ns=given, clock_offset_ns=500 * MS)
        return extract_trial(trial, model, stamps_ns=given, nominal_period_ns=PERIOD)

    found = measure(stamps(1200, 1202.2, 1212.3, 1300.4))
    assert found.trial.goal_id == "/move_action 2"
    assert round(found.measurements["T1"].number) == 10
    wrong = measure(stamps(1200, 1202.2, 1214.3, 1300.4)).measurements
    assert "T1 is 10.00 ms by the trace but 12.10 ms" in wrong["T1"].value.reason
    elsewhere = measure(stamps(3000, 3002, 3012, 3100)).measurements
    assert isinstance(elsewhere["T1"].value, Invalid)
