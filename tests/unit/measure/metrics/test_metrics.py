"""Each metric on a trace with known values."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.ros2 import Phase
from pytest_ldos.base.series import Invalid, Missing
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.extract import EXECUTING_DELAY, PLANNING_DELAY, extract_metrics, extract_trial
from pytest_ldos.measure.metrics.model import CONTROL_PROBE, MARKERS, SIMULATOR_PROBE, Interfaces
from pytest_ldos.trace.ctf.stats import Gap, ReadStats, StreamStats
from pytest_ldos.trace.execution.model import ExecutionModel, Plan, PlanRequest, TrialSpan
from tests.builders.models import changed, empty_model

MS = 1_000_000
START = 1_000 * MS
PERIOD = 2 * MS


def stats(*gaps: Gap) -> ReadStats:
    return ReadStats((StreamStats(path=Path("s"), trace=0, packets=1, events=1, truncated_bytes=0, gaps=gaps),))


def times(periods_ms) -> np.ndarray:
    return START + np.concatenate([[0], np.cumsum(np.array(periods_ms) * MS)]).astype(np.int64)


@pytest.fixture
def trial() -> TrialSpan:
    phases = {
        Phase.GOAL_SENT: START,
        Phase.GOAL_ACCEPTED: START + 1 * MS,
        Phase.PLANNING: START + 2 * MS,
        Phase.EXECUTING: START + 14 * MS,
        Phase.RESULT: START + 114 * MS,
    }
    return TrialSpan(
        goal_id="a" * 32,
        scenario="baseline",
        index=0,
        begin_ns=START - 1,
        phases=phases,
        plan=Plan(70 * MS, 10),
        end_ns=START + 115 * MS,
        error_code=1,
        plan_requests=tuple(
            PlanRequest(begin_ns=START + 116 * MS, end_ns=START + (116 + took) * MS, cpu_work_ns=work)
            for took, work in ((2, MS), (8, 4 * MS))
        ),
    )


@pytest.fixture
def model(trial) -> ExecutionModel:
    return changed(
        empty_model(stats()),
        trials=[trial],
        control_cycles=START + np.arange(0, 120 * MS, PERIOD),
        sim_steps=START + np.arange(0, 120 * MS, MS),
    )


def measure(model, **stamps):
    return extract_trial(model.trials["a" * 32], model, stamps_ns=stamps, nominal_period_ns=PERIOD).measurements


def without(model, *phases, plan=True):
    (trial,) = model.trials.values()
    left = {phase: time for phase, time in trial.phases.items() if phase not in phases}
    return changed(model, trials=[dataclasses.replace(trial, phases=left, plan=trial.plan if plan else None)])


def test_latencies(model):
    measured = {name: found.value for name, found in measure(model).items()}
    assert measured["T1"] == 12.0
    assert measured["T2"] == 100.0
    assert measured["T2x"] == 30.0
    assert measured["T4"] == 114.0


def test_planning_mean_is_geometric_and_has_the_cpu_speed(model, trial):
    found = measure(model)["T1mean"]
    assert found.value == pytest.approx(4.0)
    assert found.details == {"plans": 2, "plans_cpu_work_ms": pytest.approx(2.0)}
    once = changed(model, trials=[dataclasses.replace(trial, plan_requests=())])
    assert measure(once)["T1mean"].value == Missing("the goal was not planned again")


def test_loss_while_replanning_invalidates_only_the_planning_mean(model):
    lossy = changed(model, stats=stats(Gap(START + 117 * MS, START + 118 * MS, 3, 1)))
    assert [name for name, found in measure(lossy).items() if found.number is None] == ["T1mean"]


def test_incomplete_cpu_speed_is_no_covariate(model, trial):
    first, second = trial.plan_requests
    unknown = dataclasses.replace(trial, plan_requests=(first, dataclasses.replace(second, cpu_work_ns=None)))
    assert measure(changed(model, trials=[unknown]))["T1mean"].details == {"plans": 2}


def test_mean_periods_and_the_percentile_of_jitter(model):
    slow = changed(model, control_cycles=times([2.0] * 20 + [3.0] * 30), sim_steps=times([1.0] * 50 + [2.0] * 40))
    found = {name: each.value for name, each in measure(slow).items()}
    assert found["T3mean"] == pytest.approx(np.mean([2.0] * 13 + [3.0] * 24))
    assert found["T3p90"] == pytest.approx(1.0)
    assert found["T5mean"] == pytest.approx(np.mean([1.0] * 50 + [2.0] * 32))
    assert measure(model)["T3p90"].value == 0.0


def test_perfect_loop_has_no_jitter(model):
    measured = measure(model)
    assert measured["T3"].value == 0.0
    assert measured["T5"].value == 0.0
    assert measured["T3"].details["mean_rate_hz"] == pytest.approx(500)
    assert measured["T5"].details["real_time_factor"] == pytest.approx(1.0)


def test_jitter_is_the_rms_deviation_from_the_nominal_period(model):
    """A steady loop at 400 Hz has no standard deviation, but half a millisecond of jitter."""
    steady = changed(model, control_cycles=times([2.5] * 48))
    found = measure(steady)["T3"]
    assert found.value == pytest.approx(0.5)
    assert found.details["std_ms"] == pytest.approx(0.0)
    assert found.details["mean_rate_hz"] == pytest.approx(400)
    assert found.details["misses"] == 0


def test_jitter_only_counts_the_execution_window(model):
    periods = [2.0] * 5 + [9.0] + [2.0] * 60
    before = changed(model, control_cycles=times(periods) - 8 * MS)
    assert measure(before)["T3"].value == pytest.approx(0.0)
    inside = changed(model, control_cycles=times([2.0] * 20 + [2.0 + 5.0] + [2.0] * 25))
    found = measure(inside)["T3"]
    cycles_before, cycles_behind = 14, 26
    assert found.value == pytest.approx(np.sqrt(25 / (cycles_before + cycles_behind - 1)))
    assert found.details["worst_ms"] == pytest.approx(5.0)
    assert found.details["misses"] == 1


def test_loop_tail_is_a_separate_metric(model):
    """One long period in thirty hardly changes the mean, but dominates the 99th percentile."""
    periods = [2.0] * 60
    periods[20] = 6.0
    found = measure(changed(model, control_cycles=times(periods)))
    deviations = np.zeros(
        len(times(periods)[(times(periods) >= START + 14 * MS) & (times(periods) <= START + 114 * MS)]) - 1
    )
    deviations[0] = 4.0
    assert found["T3p99"].value == pytest.approx(float(np.percentile(deviations, 99)))
    assert found["T3p99"].value == found["T3"].details["p99_ms"]
    assert found["T3p99"].value > 2 * found["T3"].value
    steady = measure(changed(model, control_cycles=times([2.5] * 48)))
    assert steady["T3p99"].value == pytest.approx(0.5)


def test_step_tail_is_relative_to_the_mean(model):
    """A late step makes the next one early; the mean length does not affect the tail."""
    slow = measure(changed(model, sim_steps=times([1.25] * 90)))
    assert slow["T5p99"].value == pytest.approx(0.0, abs=1e-9)
    late = measure(changed(model, sim_steps=times([1.0] * 50 + [1.8, 0.2] * 3 + [1.0] * 62)))
    assert late["T5p99"].value == pytest.approx(0.8, rel=0.1)
    assert late["T5"].details["p99_ms"] < 1.9


def test_step_deviation_and_real_time_factor(model):
    slow = changed(model, sim_steps=times([1.25] * 119))
    found = measure(slow)["T5"]
    assert found.value == pytest.approx(0.0)
    assert found.details["real_time_factor"] == pytest.approx(0.8)
    uneven = changed(model, sim_steps=times([0.5, 1.5] * 60)[:120])
    assert measure(uneven)["T5"].value == pytest.approx(0.5, rel=0.01)


def test_missing_values_of_a_failed_trial_have_a_reason(model):
    measured = measure(without(model, Phase.EXECUTING, plan=False))
    for name in ("T1", "T2", "T2x", "T3"):
        assert measured[name].value == Missing("the trial never entered phase 'executing'")
    assert measured["T4"].value == 114.0
    assert measured["T5"].number is not None


def test_without_a_plan_only_the_excess_is_missing(model):
    measured = measure(without(model, plan=False))
    assert isinstance(measured["T2x"].value, Missing)
    assert measured["T2"].value == 100.0


def test_loops_absent_from_the_trace_are_missing(model):
    empty = changed(model, control_cycles=np.empty(0, np.int64), sim_steps=np.empty(0, np.int64))
    measured = measure(empty)
    assert isinstance(measured["T3"].value, Missing)
    assert isinstance(measured["T5"].value, Missing)


def test_gap_invalidates_only_the_metrics_that_it_touches(model):
    """Events were lost during execution: planning remains valid."""
    lossy = changed(model, stats=stats(Gap(START + 50 * MS, START + 51 * MS, 3, 0)))
    measured = measure(lossy)
    assert measured["T1"].value == 12.0
    for name in ("T2", "T2x", "T3", "T4", "T5"):
        assert measured[name].value == Invalid("3 events lost while it was measured")


def test_a_gap_outside_the_trial_does_not_matter(model):
    lossy = changed(model, stats=stats(Gap(START + 200 * MS, START + 201 * MS, 3, 1)))
    assert all(found.number is not None for found in measure(lossy).values())


def test_stamps_that_agree(model):
    stamps = {"planning": 2 * MS, "executing": 14 * MS + 900_000, "result": 114 * MS, "goal_sent": 0}
    assert measure(model, **stamps)["T1"].value == 12.0


@pytest.mark.parametrize(
    ("stamps", "reason"),
    [
        (
            {"planning": 2 * MS, "executing": 15 * MS + 200_000, "result": 115 * MS},
            "T1 is 12.00 ms by the trace but 13.20 ms",
        ),
        ({"executing": 14 * MS, "result": 118 * MS}, "T2 is 100.00 ms by the trace but 104.00 ms"),
        ({"goal_sent": 0, "result": 110 * MS}, "T4 is 114.00 ms by the trace but 110.00 ms"),
    ],
)
def test_stamps_that_disagree_invalidate_the_trial_with_both_numbers(model, stamps, reason):
    measured = measure(model, **stamps)
    assert all(isinstance(found.value, Invalid) and reason in found.value.reason for found in measured.values())


def test_missing_markers_invalidate_a_stamped_trial(model):
    measured = measure(without(model, Phase.PLANNING), planning=2 * MS, executing=14 * MS)
    assert all("not marked in the trace" in found.value.reason for found in measured.values())


def test_trial_absent_from_the_trace(model):
    measured = extract_trial(None, model, stamps_ns={}, nominal_period_ns=PERIOD).measurements
    assert set(measured) == set(METRICS)
    assert all(isinstance(found.value, Invalid) for found in measured.values())


def test_reception_delays_are_segments(model, trial):
    topics = {
        "/move_action/_action/feedback": [START + 1_700_000, START + 13_600_000, START + 113 * MS],
        "/panda_arm_controller/follow_joint_trajectory/_action/feedback": [START + 13_990_000],
    }
    found = extract_trial(trial, changed(model, publications=topics), stamps_ns={}, nominal_period_ns=PERIOD)
    assert found.reception_ns == {PLANNING_DELAY: 300_000, EXECUTING_DELAY: 400_000}


def test_publication_before_the_goal_is_no_feedback(model, trial):
    publications = {"/m/_action/feedback": [START - MS]}
    found = extract_trial(trial, changed(model, publications=publications), stamps_ns={}, nominal_period_ns=PERIOD)
    assert found.reception_ns == {}


def test_all_trials_of_a_trace_are_measured_by_their_markers(model, trial):
    other = dataclasses.replace(trial, goal_id="c" * 32)
    both = changed(model, trials=[trial, other])
    assert {
        goal: found.measurements["T1"].value for goal, found in extract_metrics(both, nominal_period_ns=PERIOD).items()
    } == {
        "a" * 32: 12.0,
        "c" * 32: 12.0,
    }


def test_overall_score_excludes_tails():
    weights = {name: metric.score_weight for name, metric in METRICS.items() if metric.score_weight}
    assert weights == {"T1": 1.0, "T2": 1.0, "T3": 0.5, "T4": 1.5, "T5": 0.3}


def test_markers_and_probes_are_the_sources(model):
    sources = {name: found.source for name, found in measure(model).items()}
    assert sources == {
        **dict.fromkeys(("T1", "T1mean", "T2", "T2x", "T4"), MARKERS),
        **dict.fromkeys(("T3", "T3mean", "T3p90", "T3p99"), CONTROL_PROBE),
        **dict.fromkeys(("T5", "T5mean", "T5p99"), SIMULATOR_PROBE),
    }
    assert not any(source.is_approximate for source in sources.values())


def without_probes(model, **publications):
    return changed(
        model,
        control_cycles=np.empty(0, np.int64),
        sim_steps=np.empty(0, np.int64),
        publications={f"/{topic}": times.tolist() for topic, times in publications.items()},
    )


def test_without_probes_publications_are_an_approximate_source(model):
    """Other metrics keep their markers: each chooses its best source."""
    found = measure(without_probes(model, joint_states=times([2.5] * 48), clock=times([0.5, 1.5] * 60)))
    assert found["T3"].value == pytest.approx(0.5)
    assert found["T5"].value == pytest.approx(0.5, rel=0.01)
    assert found["T3"].source.name == "/joint_states publications"
    assert found["T5"].source.name == "/clock publications"
    assert found["T3"].source.is_approximate
    assert found["T5"].source.is_approximate
    assert "real_time_factor" not in found["T5"].details
    assert found["T1"].source == MARKERS


def test_probes_have_precedence_over_publications(model):
    topics = {"/joint_states": times([2.5] * 48).tolist(), "/clock": times([0.5, 1.5] * 60).tolist()}
    found = measure(changed(model, publications=topics))
    assert found["T3"].source == CONTROL_PROBE
    assert found["T5"].source == SIMULATOR_PROBE


def test_silent_probes_are_not_replaced(model):
    """Trials of one run must not come from different sources."""
    topics = {"/joint_states": times([2.0] * 60).tolist(), "/clock": times([1.0] * 120).tolist()}
    early = np.array([START - 300 * MS, START - 298 * MS, START - 296 * MS])
    found = measure(changed(model, publications=topics, control_cycles=early, sim_steps=early))
    assert found["T3"].value == Missing("the trace has no control cycles meanwhile")
    assert found["T5"].value == Missing("the trace has no simulator steps in the trial")


def test_joint_states_at_another_rate_are_not_used(model):
    found = measure(without_probes(model, joint_states=times([10.0] * 20)))["T3"]
    assert found.value == Missing(
        "the trace has no control cycles; /joint_states does not show them: it comes at 100 Hz, the loop runs at 500 Hz"
    )


def test_the_busiest_publisher_of_a_topic_is_measured(model):
    """A gripper's joint states on the same topic are not the arm's cycles."""
    arm, gripper = times([2.0] * 60), times([20.0] * 6) + MS // 2
    both = without_probes(model, joint_states=arm)
    second = both.publications.head(len(gripper)).with_columns(
        time_ns=pl.Series(gripper), publisher=pl.lit(7, pl.Int32)
    )
    publishers = pl.concat([both.publishers, both.publishers.with_columns(id=pl.lit(7, pl.Int32))])
    merged = pl.concat([both.publications, second]).sort("time_ns")
    found = measure(dataclasses.replace(both, publishers=publishers, publications=merged))["T3"]
    assert found.value == pytest.approx(0.0)


def test_a_stack_without_a_simulator_has_no_step_deviation(model):
    found = measure(without_probes(model, joint_states=times([2.0] * 60)))["T5"]
    assert found.value == Missing("the trace has no simulator: neither its steps nor publications on /clock")
    assert found.source is None


def test_topic_names_are_configurable(model):
    there = without_probes(model, states=times([2.0] * 60), time=times([1.0] * 120))
    (trial,) = there.trials.values()
    names = Interfaces(joint_states="/states", clock="/time")
    found = extract_trial(trial, there, stamps_ns={}, nominal_period_ns=PERIOD, interfaces=names).measurements
    assert found["T3"].source.name == "/states publications"
    assert found["T5"].source.name == "/time publications"


def test_relative_name_is_refused():
    with pytest.raises(ConfigurationError, match="'move_action' is no full name") as caught:
        Interfaces(action="move_action")
    assert "'/move_action'" in caught.value.remedy
