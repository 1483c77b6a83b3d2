"""The conductor with fake motions: order of goals, records, and early ends."""

from __future__ import annotations

import math
import subprocess
import sys
from contextlib import contextmanager

import pytest

from pytest_ldos.base.errors import ConfigurationError, RecordingFailed
from pytest_ldos.base.ros2 import BUILT_IN_PATHS
from pytest_ldos.base.series import Invalid, Missing, Moments
from pytest_ldos.host.interference import Interference
from pytest_ldos.host.process_resources import TaskExits
from pytest_ldos.measure.metrics.catalogue import catalogue_of
from pytest_ldos.measure.trial.artifacts import ScenarioFolder, read_trials
from pytest_ldos.measure.trial.conduct import (
    Observer,
    Procedure,
    add_trials,
    conduct,
    content_of,
    new_record,
    undisturbed,
)
from pytest_ldos.robot.stack.goals import PANDA_GOALS, ErrorCode, Goal, OutcomeClass, Pose
from pytest_ldos.robot.stack.problems import ALL, read_problems
from pytest_ldos.scenario.metrics import parse_metrics
from pytest_ldos.scenario.model import ScenarioSpec, StackSpec
from pytest_ldos.scenario.stimuli import PlanSpec
from pytest_ldos.scenario.words import SeedMode
from tests.fakes.rig import SOLVE, TYPICAL, Motion, open_fake_rig

REACH = PANDA_GOALS.sets["reach"]


@pytest.fixture
def folder(tmp_path):
    folder = ScenarioFolder(tmp_path / "scenario")
    folder.logs.mkdir(parents=True)
    return folder


def run(folder, script=TYPICAL, goals=REACH, observer=None, disturb=undisturbed, *, is_disturbed=False, **spec):
    scenario = ScenarioSpec(name="baseline", **{"trials": 3, "warmup": 1, **spec})
    with open_fake_rig(StackSpec(), folder, script=script, is_disturbed=is_disturbed) as rig:
        trials = conduct(rig, scenario, goals, observer=observer, disturb=disturb)
        return trials, rig


def test_trials_begin_at_home_and_warm_ups_are_not_recorded(folder):
    trials, rig = run(folder)
    assert rig.stack.goals == ["reach", "home"] * 4
    assert [trial.index for trial in trials.trials] == [0, 1, 2]
    assert trials.incomplete == ""
    assert all(trial.measurements["T1"].number is not None for trial in trials.trials)


def test_start_helpers_end_before_trials(folder):
    _, rig = run(folder, trials=1, warmup=2)
    warmed_up = rig.stack.goals[: rig.stack.settled_after[0]]
    assert warmed_up == ["reach", "home"] * 2
    assert len(rig.stack.settled_after) == 1


def test_goal_is_replanned_before_the_reset(folder):
    trials, rig = run(folder, script=lambda index: Motion(planning_ms=10 + index))
    assert rig.stack.plan_requests == 3 * 25
    assert [trial.measurements["T1mean"].value for trial in trials.trials] == pytest.approx([10.0, 11.0, 12.0])
    assert {trial.measurements["T1mean"].details["plans"] for trial in trials.trials} == {25}


def test_warm_up_by_planning_does_not_move_the_arm(folder):
    with open_fake_rig(StackSpec(), folder) as rig:
        rig.stack.warms_up_by_planning = True
        conduct(rig, ScenarioSpec(name="baseline", trials=1, warmup=2), REACH)
    assert rig.stack.goals == ["reach", "home"]
    assert rig.stack.plan_requests == 2 * 3 + 25


def test_arm_without_plan_requests_warms_up_by_moving(folder):
    with open_fake_rig(StackSpec(), folder) as rig:
        rig.stack.warms_up_by_planning, rig.stack.can_plan_only = True, False
        conduct(rig, ScenarioSpec(name="baseline", trials=1, warmup=1), REACH)
    assert rig.stack.goals == ["reach", "home"] * 2


@pytest.mark.parametrize(("planning_ms", "requests"), [(40, 25), (166, 6), (400, 2), (1100, 0)])
def test_slow_planner_makes_fewer_plans(folder, planning_ms, requests):
    trials, rig = run(folder, script=lambda index: Motion(planning_ms=planning_ms), trials=1)
    assert rig.stack.plan_requests == requests
    assert (trials.trials[0].measurements["T1mean"].number is not None) == (requests > 0)


def test_failed_goal_is_not_replanned(folder):
    _, rig = run(folder, script=lambda index: Motion(error_code=ErrorCode.PLANNING_FAILED))
    assert rig.stack.plan_requests == 0


def test_stack_without_plan_requests_is_not_replanned(folder):
    with open_fake_rig(StackSpec(), folder) as rig:
        rig.stack.can_plan_only = False
        trials = conduct(rig, ScenarioSpec(name="baseline", trials=1), REACH)
    assert rig.stack.plan_requests == 0
    assert trials.trials[0].measurements["T1mean"].value == Missing("the goal was not planned again")


def test_goals_alternate(folder):
    other = Goal("other", pose=Pose((0.3, 0, 0.6), (1, 0, 0, 0)))
    trials, _ = run(folder, goals=(*REACH, other), trials=5)
    assert [trial.goal for trial in trials.trials] == ["reach", "other", "reach", "other", "reach"]


def test_seeds_are_fixed_for_each_index_or_random(folder):
    trials, _ = run(folder)
    assert [trial.seed for trial in trials.trials] == [1, 2, 3]
    trials, rig = run(folder, seeds=SeedMode.RANDOM)
    assert {trial.seed for trial in trials.trials} | set(rig.stack.seeds) == {None}


def test_measurements_come_from_the_trace(folder):
    trials, _ = run(
        folder, script=lambda index: Motion(planning_ms=10 + index, planned_ms=50, settle_ms=7, jitter_ms=0)
    )
    assert [trial.measurements["T1"].value for trial in trials.trials] == [10.0, 11.0, 12.0]
    assert [trial.measurements["T2x"].value for trial in trials.trials] == pytest.approx([7.0] * 3)
    assert [trial.measurements["T3"].value for trial in trials.trials] == [0.0] * 3


def test_the_record_is_on_disk_after_each_trial(folder):
    seen = []

    class Looking(Observer):
        def trial(self, trial):
            seen.append(len(read_trials(folder.path).trials))

    trials, _ = run(folder, observer=Looking())
    assert seen == [1, 2, 3]
    assert read_trials(folder.path) == trials


def test_interrupt_keeps_finished_trials(folder):
    """Ctrl-C in the third trial: two trials with measurements are on disk."""

    def script(index):
        if index == 2:
            raise KeyboardInterrupt
        return Motion(planning_ms=10)

    with pytest.raises(KeyboardInterrupt):
        run(folder, script=script, trials=5)
    saved = read_trials(folder.path)
    assert [trial.measurements["T1"].value for trial in saved.trials] == [10.0, 10.0]


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (KeyboardInterrupt(), "the run was interrupted"),
        (ValueError("no such joint"), "ValueError: no such joint"),
        (SystemExit(3), "SystemExit: 3"),
        (RecordingFailed("the tracer refused", remedy="restart it"), "the tracer refused\n  → restart it"),
    ],
)
def test_reason_of_an_early_end_is_recorded(folder, end, reason):
    def script(index):
        if index == 2:
            raise end
        return Motion(planning_ms=10)

    with pytest.raises(type(end)):
        run(folder, script=script, trials=5)
    saved = read_trials(folder.path)
    assert [trial.measurements["T1"].value for trial in saved.trials] == [10.0, 10.0]
    assert saved.incomplete == reason


def test_a_failed_goal_is_a_trial_and_the_next_one_follows(folder):
    trials, _ = run(folder, script=lambda index: Motion(error_code=ErrorCode.NO_IK_SOLUTION if index == 1 else 1))
    assert [trial.outcome for trial in trials.trials] == ["success", "planning_failed", "success"]
    assert trials.trials[1].error_code == ErrorCode.NO_IK_SOLUTION
    assert trials.successes == 2


def test_dead_stack_ends_the_trials(folder):
    death = Motion(error_code=None, message="simulator was killed by SIGKILL")
    trials, _ = run(folder, script=lambda index: death if index == 1 else Motion(), trials=5)
    assert [trial.outcome for trial in trials.trials] == [OutcomeClass.SUCCESS, OutcomeClass.STACK_DIED]
    assert "SIGKILL" in trials.incomplete
    assert read_trials(folder.path) == trials


def test_death_before_the_goal_is_no_fault_of_the_trace(folder):
    death = Motion(error_code=None, message="killed", is_sent=False)
    trials, _ = run(folder, script=lambda index: death if index == 1 else Motion(), trials=5)
    planned, dead = (trial.measurements for trial in trials.trials)
    assert planned["T1"].number is not None
    assert {each.value for each in dead.values()} == {Missing("the stack died before the goal was sent")}


def test_wrong_stamps_make_a_trial_invalid(folder):
    trials, _ = run(folder, script=lambda index: Motion(stamp_shift_ms=30 if index == 1 else 0))
    values = [trial.measurements["T2"].value for trial in trials.trials]
    assert isinstance(values[1], Invalid)
    assert not isinstance(values[0], Invalid)


def test_unreadable_trace_makes_all_trials_invalid(folder):
    def script(index):
        return Motion()

    with open_fake_rig(StackSpec(), folder, script=script) as rig:
        pause = rig.recorder.pause

        def pause_and_damage():
            report = pause()
            (rig.recorder.directory / "metadata").write_bytes(b"")
            return report

        rig.recorder.pause = pause_and_damage
        trials = conduct(rig, ScenarioSpec(name="baseline", trials=2, warmup=0), REACH)
    reasons = [trial.measurements["T1"].value.reason for trial in trials.trials]
    assert all("metadata is empty" in reason for reason in reasons)


def test_two_calls_on_one_stack_measure_their_own_trials(folder):
    with open_fake_rig(StackSpec(), folder) as rig:
        spec = ScenarioSpec(name="baseline", trials=2, warmup=0)
        first, second = conduct(rig, spec, REACH), conduct(rig, spec, REACH)
    assert {trial.goal_id for trial in first.trials}.isdisjoint({trial.goal_id for trial in second.trials})
    assert all(trial.measurements["T4"].number for trial in (*first.trials, *second.trials))


def test_loads_begin_when_the_stack_is_warm(folder):
    order = []

    class Watching(Observer):
        def warm_up(self, number):
            order.append(f"warm-up {number}")

        def trial(self, trial):
            order.append(f"trial {trial.index}")

    @contextmanager
    def disturb():
        order.append("loads begin")
        yield ()
        order.append("loads end")

    run(folder, observer=Watching(), disturb=disturb, trials=2, warmup=1)
    assert order == ["warm-up 1", "loads begin", "trial 0", "trial 1", "loads end"]


def test_interference_is_recorded_per_trial_and_before_the_first(folder):
    order = []

    class Watching(Observer):
        def surroundings(self, found):
            order.append(found.seconds > 0)

        def warm_up(self, number):
            order.append("warm-up")

        def trial(self, trial):
            order.append("trial")

    trials, _ = run(folder, observer=Watching(), is_disturbed=True, trials=2, warmup=1)
    assert order == ["warm-up", True, "trial", "trial"]
    spans = [trial.interference for trial in trials.trials]
    assert all(0 < each.seconds < trials.surroundings.seconds and each.cpus >= 1 for each in spans)
    assert trials.interference.seconds == sum(each.seconds for each in spans)
    assert read_trials(folder.trials_file) == trials


def test_interference_covers_the_whole_start_after_an_early_end(folder):
    trials, _ = run(folder, script=lambda index: Motion(error_code=None, message="it died"), trials=2)
    assert trials.incomplete
    assert trials.interference == trials.surroundings


@pytest.fixture
def interfered(monkeypatch):
    """Makes the next trials last a second, in which other processes use the given number of two CPUs."""

    def script(*others_s):
        following = iter(others_s)

        class Meter:
            own_pids = frozenset()

            def measure(self):
                return Interference(seconds=1.0, cpus=2, others_s=next(following, 0.0), programs={"cargo": 1.0})

        monkeypatch.setattr("pytest_ldos.measure.trial.conduct.InterferenceMeter", Meter)

    return script


def test_trials_with_heavy_interference_are_repeated_and_kept(folder, interfered):
    again = []

    class Watching(Observer):
        def repeat(self, trial):
            again.append(trial.index)

    interfered(0.1, 1.5, 0.1, 1.9, 1.9)
    trials, rig = run(folder, observer=Watching(), trials=10)
    assert [trial.index for trial in trials.trials] == list(range(10))
    assert again == [trial.index for trial in trials.repeated] == [1, 2]
    assert trials.trials[2].interference.others_s == 1.9, "two of ten are made again at most"
    assert all(trial.measurements["T1"].number for trial in (*trials.trials, *trials.repeated))
    assert rig.stack.goals == ["reach", "home"] * 13
    assert read_trials(folder.trials_file) == trials


def test_failure_under_heavy_interference_counts(folder, interfered):
    interfered(1.9, 1.9)
    trials, _ = run(folder, script=lambda index: Motion(error_code=ErrorCode.PLANNING_FAILED), trials=5)
    assert (trials.repeated, trials.successes) == ((), 0)


def test_few_trials_are_not_repeated(folder, interfered):
    interfered(1.9, 1.9)
    trials, _ = run(folder, trials=4)
    assert trials.repeated == ()


NOT_HOME = "the arm could not return home (timed_out: it stood still)"


def brought_back(folder, *ways_home):
    again = []

    class Watching(Observer):
        def reset_again(self, failure):
            again.append(failure)

    with open_fake_rig(StackSpec(), folder) as rig:
        rig.stack.ways_home.extend(ways_home)
        conduct(rig, ScenarioSpec(name="baseline", trials=2, warmup=1), REACH, observer=Watching())
    return read_trials(folder.trials_file), rig.stack.goals, again


def test_failed_reset_is_retried_and_recorded(folder):
    came, lost = OutcomeClass.SUCCESS, OutcomeClass.TIMED_OUT
    trials, goals, again = brought_back(folder, came, lost, came)
    assert [trial.reset_failure for trial in trials.trials] == [NOT_HOME, ""]
    assert goals == ["reach", "home", "reach", "home", "home", "reach", "home"]
    assert (again, trials.incomplete) == ([NOT_HOME], "")


def test_failed_reset_after_a_warm_up_is_retried(folder):
    trials, goals, again = brought_back(folder, OutcomeClass.CONTROL_FAILED)
    assert goals[:4] == ["reach", "home", "home", "reach"]
    assert (len(again), len(trials.trials), trials.incomplete) == (1, 2, "")


def test_second_failed_reset_ends_the_trials(folder):
    came, lost = OutcomeClass.SUCCESS, OutcomeClass.TIMED_OUT
    trials, goals, again = brought_back(folder, came, lost, lost)
    assert goals == ["reach", "home", "reach", "home", "home"]
    assert (again, trials.incomplete) == ([NOT_HOME], f"{NOT_HOME}, at the second attempt, too")
    assert [trial.reset_failure for trial in trials.trials] == [""]


def test_stack_that_dies_in_a_reset_is_not_retried(folder):
    trials, goals, again = brought_back(folder, OutcomeClass.SUCCESS, OutcomeClass.STACK_DIED)
    assert goals == ["reach", "home", "reach", "home"]
    assert (again, trials.incomplete) == ([], "it stood still")


DECLARED = ("cpu:planner", "memory:*", "rate:/scan", "path:planning:p50")


def declared(*texts):
    return parse_metrics(list(texts), BUILT_IN_PATHS)


def test_declared_metrics_are_measured_and_recorded(folder):
    with open_fake_rig(StackSpec(), folder) as rig:
        conduct(rig, ScenarioSpec(name="baseline", trials=2), REACH, declared=declared(*DECLARED))
    trials = read_trials(folder.trials_file)
    assert [metric.asked_as for metric in trials.metrics if metric.asked_as] == list(DECLARED)
    for trial in trials.trials:
        found = trial.measurements
        assert found["cpu_planner"].number > 0
        assert found["memory_all"].number > 10
        assert found["memory_all"].source.name == "peak of memory"
        assert found["path_planning_p50"].number == found["T1"].number
        assert found["rate_scan"].value == Missing("the trace names no topics")


def test_resources_are_read_only_on_request(folder):
    with open_fake_rig(StackSpec(), folder) as rig:
        rig.stack.processes = lambda: pytest.fail("not requested")
        conduct(rig, ScenarioSpec(name="baseline", trials=1), REACH, declared=declared("rate:/scan"))


def test_unknown_process_is_refused_before_the_first_trial(folder):
    with open_fake_rig(StackSpec(), folder) as rig, pytest.raises(ConfigurationError) as refused:
        conduct(rig, ScenarioSpec(name="baseline", trials=2), REACH, declared=declared("cpu:planer"))
    assert str(refused.value).splitlines() == [
        "metric 'cpu:planer': no process of the stack is called 'planer'; it has planner",
        "  \u2192 did you mean 'planner'? ([tool.ldos] metrics)",
    ]
    assert read_trials(folder.trials_file).trials == ()


def test_unknown_own_event_is_refused_before_the_first_trial(folder):
    with open_fake_rig(StackSpec(), folder) as rig:
        rig.recorder.emit(SOLVE, 1)
        with pytest.raises(ConfigurationError) as refused:
            conduct(rig, ScenarioSpec(name="baseline", trials=2), REACH, declared=declared("count:arm:solev"))
    assert str(refused.value).splitlines() == [
        "metric 'count:arm:solev': the trace has no event arm:solev: did you mean 'arm:solve'?",
        "  \u2192 correct it in [tool.ldos] metrics",
    ]
    assert read_trials(folder.trials_file).trials == ()


def test_base_may_lack_a_process(folder):
    catalogue = catalogue_of((), declared("cpu:new_node", "cpu:planner"))
    with open_fake_rig(StackSpec(), folder) as rig:
        procedure = Procedure(goals=REACH, catalogue=catalogue, is_under_test=False)
        record = new_record(rig, ScenarioSpec(name="baseline"), catalogue)
        trials = add_trials(rig, record, procedure, until=1, warmup=0, save=lambda _: None)
    (trial,) = trials.trials
    reason = "no process of the stack is called 'new_node'; it has planner"
    assert trial.measurements["cpu_new_node"].value == Missing(reason)
    assert trial.measurements["cpu_planner"].number > 0


def test_process_that_restarts_twice_is_measured_completely(folder):
    with TaskExits() as heard:
        if not heard.is_whole:
            pytest.skip("this kernel keeps no records of ended threads")
    spin = "import time\nwhile time.process_time() < 0.2: pass\nprint('spun', flush=True); input()"
    running: dict[int, str] = {}
    started: list[subprocess.Popen[bytes]] = []

    def restart() -> None:
        for each in started:
            each.kill()
            each.wait()
        command = [sys.executable, "-c", spin]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        running.clear()
        running[started[-1].pid] = "planner"
        assert started[-1].stdout is not None
        started[-1].stdout.readline()

    restart()
    with open_fake_rig(StackSpec(), folder) as rig:
        move = rig.stack.move

        def restart_in_first_trial(goal, **settings):
            if settings["trial"] is not None and settings["trial"].index == 0:
                restart()
                restart()
            return move(goal, **settings)

        rig.stack.processes = lambda: dict(running)
        rig.stack.all_processes = lambda: dict.fromkeys((each.pid for each in started), "planner")
        rig.stack.move = restart_in_first_trial
        trials = conduct(rig, ScenarioSpec(name="baseline", trials=2), REACH, declared=declared("cpu:planner"))
    started[-1].communicate()
    for each in started[:-1]:
        each.stdin.close()
        each.stdout.close()
    first, second = (trial.measurements["cpu_planner"] for trial in trials.trials)
    assert (first.details, second.details) == ({"began": 2.0, "ended": 2.0}, {})
    assert 390 < first.number < 1500
    assert second.number == pytest.approx(0.0, abs=5.0)


def test_controller_manager_statistics_are_per_trial(folder):
    """It counts from its start: 500 updates per second between two readings."""
    statistics = iter([Moments(count, 20.0 + count / 1000, 0.0) for count in (0, 1000, 1500, 2000, 2500)])
    with open_fake_rig(StackSpec(), folder) as rig:
        rig.stack.loop_statistics = lambda: {"arm.stats/execution_time": next(statistics)}
        trials = conduct(rig, ScenarioSpec(name="baseline", trials=2), REACH, declared=declared("update:arm"))
    first, second = (trial.measurements["update_arm"] for trial in trials.trials)
    assert (first.details["updates"], second.details["updates"]) == (500, 500)
    assert first.number == pytest.approx((1500 * 21.5 - 1000 * 21.0) / 500 / 1000)
    assert second.number == pytest.approx((2500 * 22.5 - 2000 * 22.0) / 500 / 1000)


def test_numbers_in_messages_are_per_trial(folder):
    """The first two answers are those before the trials; what arrives between trials counts in none."""
    topic = "/planning/debug/processing_time_ms"
    answers = iter([[], [9.0], [1.0, 2.0, 4.0], [9.0], []])
    with open_fake_rig(StackSpec(), folder) as rig:
        rig.stack.topic_numbers = lambda subjects: {each: next(answers) for each in subjects}
        wanted = declared(f"topic:{topic}:data", f"topic:{topic}:data:max")
        trials = conduct(rig, ScenarioSpec(name="baseline", trials=2), REACH, declared=wanted)
    name = "topic_planning_debug_processing_time_ms_data"
    first, second = (trial.measurements for trial in trials.trials)
    assert [first[f"{name}_{each}"].number for each in ("p50", "max")] == [2.0, 4.0]
    assert first[f"{name}_p50"].details == {"values": 3.0}
    assert second[f"{name}_p50"].value == Missing(f"no message of {topic} arrived in the trial")


@pytest.mark.parametrize(("numbers", "reason"), [([-1.0], "is -1, and only 0 or more"), ([math.nan], "is no number")])
def test_numbers_in_messages_that_cannot_be_compared(folder, numbers, reason):
    with open_fake_rig(StackSpec(), folder) as rig:
        rig.stack.topic_numbers = lambda subjects: dict.fromkeys(subjects, numbers)
        trials = conduct(rig, ScenarioSpec(name="baseline", trials=1), REACH, declared=declared("topic:/a:data"))
    assert reason in trials.trials[0].measurements["topic_a_data_p50"].value.reason


def test_topic_without_numbers_is_refused(folder):
    with open_fake_rig(StackSpec(), folder) as rig, pytest.raises(ConfigurationError, match="of ROS 2 only"):
        conduct(rig, ScenarioSpec(name="baseline", trials=2), REACH, declared=declared("topic:/a:data"))


def test_controller_metric_without_controller_manager_is_refused(folder):
    with open_fake_rig(StackSpec(), folder) as rig, pytest.raises(ConfigurationError, match="no controller manager"):
        conduct(rig, ScenarioSpec(name="baseline", trials=2), REACH, declared=declared("update:arm"))


def contents_of(file, text, **settings):
    file.write_text(text)
    return {each.name: content_of(each) for each in read_problems(PlanSpec(problems=str(file), **settings)).cases(ALL)}


def test_content_of_a_problem_is_that_of_its_file_and_not_of_the_settings(tmp_path):
    file = tmp_path / "problems.yaml"
    text = "problems: [{name: near, start: {a: 0.0}, goal: {joints: {a: 1.0}}}]"
    usual = contents_of(file, text)
    others = contents_of(file, text, planner="PRM", pipeline="ompl", time_limit_s=1.0)
    moved = contents_of(file, text.replace("1.0", "1.1"))
    assert usual == others
    assert usual["near"] != moved["near"]
    assert content_of(PANDA_GOALS.home) == ""
