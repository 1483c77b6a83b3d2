"""One short real run: real DDS, planner, physics and traces, from start to verdict."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pytest_ldos.base.ros2 import Phase
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.extract import EXECUTING_DELAY, LATENCY, PLANNING_DELAY
from pytest_ldos.measure.trial.rig import RECEPTION
from pytest_ldos.robot.stack.goals import REACHED_POSITION_M, REACHED_ROTATION_RAD
from pytest_ldos.trace.ctf.read import DecodedTrace, read_trace
from pytest_ldos.trace.execution.build import build_execution
from tests.integration.embedded.short_run import TRIALS, ShortRun


@pytest.fixture(scope="module")
def run(short_run) -> ShortRun:
    return short_run


@pytest.fixture(scope="module")
def trace(run) -> DecodedTrace:
    return read_trace(run.folder / "trace")


def test_run_is_green_and_reports_its_measurements(run):
    assert run.code == 0, run.output
    assert f"baseline: no_baseline; {TRIALS} of {TRIALS} trials succeeded" in run.output
    assert "recorded as the first baseline of this host class" in run.output


def test_nothing_is_left_behind(run):
    assert run.left_running == set()
    assert run.left_in_memory == set()


def test_every_metric_of_every_trial_is_measured(run):
    trials = run.project.saved().trials
    assert len(trials) == TRIALS
    for trial in trials:
        assert set(trial.measurements) >= set(METRICS)
        assert all(found.number is not None for found in trial.measurements.values()), trial.measurements


def test_trace_and_client_agree(run):
    """T1, T2 and T4 by markers are within a millisecond and a per cent of the client's stamps."""
    for trial in run.project.saved().trials:
        stamps = trial.stamps_ns
        for name, first, last in (
            ("T1", "planning", "executing"),
            ("T2", "executing", "result"),
            ("T4", "goal_sent", "result"),
        ):
            stamped_ms = (stamps[last] - stamps[first]) / 1e6
            assert trial.measurements[name].number == pytest.approx(stamped_ms, abs=1 + 0.01 * stamped_ms)


def test_arm_reached_its_goal(run):
    for trial in run.project.saved().trials:
        assert trial.position_error_m < REACHED_POSITION_M
        assert trial.rotation_error_rad < REACHED_ROTATION_RAD
        assert trial.plan_duration_ns > 1e9
        assert trial.measurements["T2"].number > trial.plan_duration_ns / 1e6


def test_phases_come_in_order(trace):
    for span in build_execution(trace).trials.values():
        order = [Phase.GOAL_SENT, Phase.PLANNING, Phase.EXECUTING, Phase.RESULT]
        times = [span.phases[phase] for phase in order]
        assert times == sorted(times)
        assert span.begin_ns <= times[0]
        assert times[-1] <= span.end_ns
        assert span.error_code == 1


def test_nothing_was_lost(run, trace):
    assert run.project.saved().discarded_events == 0
    assert trace.stats.discarded_events == trace.stats.lost_packets == 0


def test_loops_run_at_their_rates(trace):
    model = build_execution(trace)
    assert np.median(np.diff(model.step_times_ns)) == pytest.approx(1e6, rel=0.05)
    assert np.median(np.diff(model.cycle_times_ns)) == pytest.approx(2e6, rel=0.05)
    # After the last trial the recording pauses, to be read, and goes on.
    last = max(span.end_ns for span in model.trials.values())
    assert np.all(np.diff(model.sim_steps["sim_time_ns"].to_numpy()[model.step_times_ns <= last]) == 1_000_000)


def test_feedback_delays_are_segments(run):
    for trial in run.project.saved().trials:
        delays = trial.segments_ns[RECEPTION]
        assert set(delays) == {PLANNING_DELAY, EXECUTING_DELAY}
        assert all(0 < delay < 50e6 for delay in delays.values())


def test_every_trial_keeps_the_segments_of_its_paths(run):
    """Segments of a path that is passed once sum to its latency; those of a frequent one nearly do."""
    for trial in run.project.saved().trials:
        planning = dict(trial.segments_ns["planning"])
        assert planning.pop(LATENCY) == sum(planning.values()) == round(trial.measurements["T1"].number * 1e6)
        feedback = dict(trial.segments_ns["state feedback"])
        assert feedback.pop(LATENCY) == pytest.approx(sum(feedback.values()), rel=0.3)
        assert "callback run: /robot_state_publisher: /joint_states" in feedback


def test_every_take_has_its_publication(trace):
    """Received messages were sent, by source timestamp, as on real ROS 2."""
    published = set(trace.events["ros2:rmw_publish"]["timestamp"].tolist())
    taken = trace.events["ros2:rmw_take"]
    last = max(span.end_ns for span in build_execution(trace).trials.values())
    received = taken["source_timestamp"][(taken["taken"] == 1) & (taken.timestamp_ns <= last)]
    assert len(received) > 1000
    assert set(received.tolist()) <= published


def test_everything_has_a_name(trace):
    """All four processes, their nodes and topics, named by initialisation events."""
    assert set(trace.events["ros2:rcl_node_init"].columns["node_name"]) == {
        "simulator",
        "move_group",
        "robot_state_publisher",
        "ldos_goal_client",
    }
    topics = set(trace.events["ros2:rcl_publisher_init"].columns["topic_name"])
    assert {"/clock", "/joint_states", "/tf", "/move_action/_action/feedback"} <= topics
    used = set(
        zip(
            trace.events["ros2:callback_start"]["vpid"].tolist(),
            trace.events["ros2:callback_start"]["callback"].tolist(),
            strict=True,
        )
    )
    registered = trace.events["ros2:rclcpp_callback_register"]
    assert used <= set(zip(registered["vpid"].tolist(), registered["callback"].tolist(), strict=True))


def test_interchange_and_baseline_are_written(run):
    names = {each["name"] for each in json.loads((run.project.path / "out.json").read_text())["benchmarks"]}
    assert names >= {f"baseline[{metric}]" for metric in METRICS}
    assert len(list(run.project.path.glob(".ldos/baselines/embedded/*/baseline.json"))) == 1
