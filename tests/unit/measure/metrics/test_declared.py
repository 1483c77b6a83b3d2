"""Metrics of paths, topics and processes: values, and reasons of missing values."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from pytest_ldos import api
from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.ros2 import BUILT_IN_PATHS, Phase
from pytest_ldos.base.series import Better, Missing
from pytest_ldos.host.process_resources import ProcessUse, StackUse, ThreadUse
from pytest_ldos.measure.metrics.catalogue import METRICS, catalogue_of
from pytest_ldos.measure.metrics.declared import declare, in_traces, refuse_absent
from pytest_ldos.measure.metrics.extract import extract_trial
from pytest_ldos.measure.metrics.model import OutsideTrace
from pytest_ldos.scenario.metrics import parse_metrics
from pytest_ldos.trace.execution.model import MissingEvent, Plan, TrialSpan
from tests.builders.models import changed, empty_model

MS = 1_000_000
START = 10_000 * MS
LENGTH = 2_000 * MS


def specs(*texts):
    return parse_metrics(list(texts), BUILT_IN_PATHS)


@pytest.fixture
def trial():
    phases = {
        Phase.GOAL_SENT: START,
        Phase.PLANNING: START + 2 * MS,
        Phase.EXECUTING: START + 14 * MS,
        Phase.RESULT: START + LENGTH,
    }
    return TrialSpan(
        goal_id="a" * 32,
        scenario="baseline",
        index=0,
        begin_ns=START,
        phases=phases,
        plan=Plan(70 * MS, 10),
        end_ns=START + LENGTH + MS,
        error_code=1,
    )


@pytest.fixture
def model(trial):
    return changed(empty_model(), trials=[trial])


def take(model, text, resources=None):
    (trial,) = model.trials.values()
    (spec,) = specs(text)
    found = extract_trial(
        trial,
        model,
        stamps_ns={},
        nominal_period_ns=2 * MS,
        catalogue=catalogue_of((), [spec]),
        outside=OutsideTrace(resources=resources),
    )
    assert list(found.measurements) == [*METRICS, spec.name]
    return found.measurements[spec.name]


def every(period_ms, *, first_ns=0, last_ns=20_000 * MS):
    return np.arange(round(first_ns), round(last_ns), round(period_ms * MS))


def published(model, *times, topic="/scan"):
    return changed(model, publications={topic: np.concatenate(times)})


def test_rate_of_a_slow_topic_is_independent_of_the_trials_start(model):
    """20 Hz for two seconds are 40 or 41 publications."""
    rates = [take(published(model, every(50, first_ns=shift * MS)), "rate:/scan") for shift in (0, 10, 49.9)]
    assert [each.value for each in rates] == pytest.approx([20.0] * 3, rel=1e-6)
    assert {each.details["publications"] for each in rates} == {40.0, 41.0}
    assert {each.source.name for each in rates} == {"publications"}


def test_topic_that_stops_halfway_has_half_the_rate_and_a_gap(model):
    stopped = published(model, every(10, last_ns=START + LENGTH // 2 + 1))
    assert take(stopped, "rate:/scan").value == pytest.approx(50.0, rel=0.01)
    assert take(stopped, "gap:/scan").value == pytest.approx(1000.0)


def test_the_largest_gap_is_between_publications_or_at_an_end(model):
    with_hole = published(model, every(10, last_ns=START + 500 * MS), every(10, first_ns=START + 600 * MS))
    assert take(with_hole, "gap:/scan").value == pytest.approx(110.0)
    late = published(model, every(10, first_ns=START + 300 * MS))
    assert take(late, "gap:/scan").value == pytest.approx(300.0)


@pytest.mark.parametrize("kind", ["rate", "gap"])
def test_silent_topic_has_a_reason(model, kind):
    silent = published(model, every(10, last_ns=START - MS))
    assert take(silent, f"{kind}:/scan").value == Missing("nothing was published on /scan in the trial")
    reason = take(silent, f"{kind}:/scann").value.reason
    assert reason == "the trace has no topic /scann: did you mean '/scan'?"
    assert take(model, f"{kind}:/scan").value == Missing("the trace names no topics")


def test_reason_names_missing_events(model):
    lacks = MissingEvent("ros2:rmw_publish", (0,), "publications are not known", ("publications",))
    silent = replace(model, missing_events=(lacks,))
    for name in ("rate:/scan", "path:state feedback:p99"):
        assert take(silent, name).value.reason.endswith("or the trace does not show it (without ros2:rmw_publish)")


def test_path_of_phases_belongs_to_the_trial(model, trial):
    both = changed(model, trials=[trial])
    found = take(both, "path:goal:p50")
    assert found.value == pytest.approx(LENGTH / MS)
    assert found.details == {"passages": 1.0}
    assert take(both, "path:planning:misses").value == 0.0
    assert take(both, "path:planning:misses").details == {"passages": 1.0, "misses": 0.0}


def test_path_without_passages_has_no_value(model):
    reason = "no passage along path 'state feedback' ended in the trial"
    assert take(model, "path:state feedback:p99").value == Missing(reason)


def used(name="planner", pid=7, **numbers):
    usual = {
        "has_begun": False,
        "cpu_ns": 30 * MS,
        "switches": 12,
        "faults": 3,
        "peak_bytes": 50_000_000,
        "resident_bytes": 90_000_000,
        "grown_bytes": 1_000_000,
    }
    return ProcessUse(name=name, pid=pid, **{**usual, **numbers})


LOST = (
    "planner ended during the trial, and what it had used until then is not known: that needs the capability "
    "CAP_NET_ADMIN, outside of containers, and Linux 5.19"
)
PAIR = StackUse((used(), used("simulator", 8, cpu_ns=70 * MS, peak_bytes=10_000_000)))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("cpu:planner", 30.0),
        ("cpu:*", 100.0),
        ("cpu:sim*", 70.0),
        ("memory:planner", 50.0),
        ("memory:*", 60.0),
        ("switches:planner", 12.0),
        ("faults:*", 6.0),
    ],
)
def test_resources_are_summed_over_matching_processes(model, text, value):
    assert take(model, text, PAIR).value == pytest.approx(value)


def test_sum_has_the_part_of_each_process(model):
    assert take(model, "cpu:*", PAIR).details == {"of_planner_ms": 30.0, "of_simulator_ms": 70.0}
    details = take(model, "memory:*", PAIR).details
    assert details == {"resident_mb": 180.0, "grown_mb": 2.0, "of_planner_mb": 50.0, "of_simulator_mb": 10.0}
    assert take(model, "memory:planner", PAIR).details == {"resident_mb": 90.0, "grown_mb": 1.0}


def test_restarted_process_counts_twice_and_is_noted(model):
    first = used(pid=7, cpu_ns=5 * MS, switches=3, faults=2, peak_bytes=70_000_000, has_ended=True, grown_bytes=-MS)
    again = StackUse((used(pid=9, has_begun=True), first))
    assert take(model, "cpu:planner", again).value == pytest.approx(35.0)
    assert take(model, "switches:planner", again).value == 15.0
    assert take(model, "faults:planner", again).value == used().faults + 2
    assert take(model, "cpu:planner", again).details == {"began": 1.0, "ended": 1.0}


def test_larger_peak_of_a_process_and_its_successor_counts(model):
    sibling = used(pid=5, peak_bytes=1_000_000)
    for before, after in ((70, 50), (50, 70)):
        first = used(pid=7, peak_bytes=before * 1_000_000, has_ended=True, grown_bytes=-MS)
        second = used(pid=9, peak_bytes=after * 1_000_000, has_begun=True)
        found = take(model, "memory:planner", StackUse((sibling, second, first)))
        assert found.value == pytest.approx(71.0)
        assert found.details == {"resident_mb": 180.0, "grown_mb": 1.0, "began": 1.0, "ended": 1.0}


def test_memory_without_peak_has_another_source(model):
    known, other = (StackUse((used(is_peak_known=known),)) for known in (True, False))
    sources = {take(model, "memory:planner", each).source for each in (known, other)}
    assert {source.is_approximate for source in sources} == {True, False}


def test_threads_are_chosen_by_name(model):
    threads = (
        ThreadUse(name="planner", cpu_ns=5 * MS, switches=3, faults=1),
        ThreadUse(name="recv", cpu_ns=9 * MS, switches=4, faults=2),
    )
    stack = StackUse((used("container", threads=threads),))
    assert take(model, "cpu:container/planner", stack).value == pytest.approx(5.0)
    assert take(model, "switches:container/*", stack).value == 7.0
    assert take(model, "faults:container/recv", stack).value == 2.0
    missing = take(model, "cpu:container/planer", stack).value
    assert missing == Missing("container has no thread 'planer'; it has planner, recv")
    uncounted = replace(threads[0], cpu_ns=None)
    stack = StackUse((used("container", threads=(uncounted,)),))
    reason = "this kernel does not count the CPU time of threads"
    assert take(model, "cpu:container/planner", stack).value == Missing(reason)


@pytest.mark.parametrize(
    ("text", "resources", "reason"),
    [
        ("cpu:planner", None, "use of resources is measured while a trial is made; no trace has it"),
        ("cpu:planer", PAIR, "no process of the stack is called 'planer'; it has planner, simulator"),
        ("cpu:planner", StackUse((used(),), {3: "planner"}), LOST),
        ("cpu:*", StackUse((used("simulator"),), {3: "planner"}), LOST),
        ("cpu:node:/planner", PAIR, "the trace has no node /planner: known are: "),
    ],
)
def test_unmeasured_process_has_a_reason(model, text, resources, reason):
    assert take(model, text, resources).value == Missing(reason)


def test_process_of_a_node_comes_from_the_trace(golden):
    """Recorded trace of real ROS 2 with one node per process."""
    model = api.build_execution(api.read_trace(golden("talker_listener")))
    pids = dict(
        model.nodes.join(model.processes.select("pid", process="id"), on="process").select("name", "pid").rows()
    )
    node, pid = next(iter(pids.items()))
    with_trial = changed(
        model,
        trials=[
            TrialSpan(
                goal_id="a" * 32,
                scenario="",
                index=0,
                begin_ns=START,
                phases={Phase.GOAL_SENT: START, Phase.RESULT: START + LENGTH},
                plan=None,
                end_ns=None,
                error_code=None,
            )
        ],
    )
    stack = StackUse((used("first", pid, cpu_ns=MS), used("second", pid + 1_000_000)))
    assert take(with_trial, f"cpu:node:{node}", stack).value == pytest.approx(1.0)


def test_unknown_process_is_refused_with_the_existing_ones():
    names = ["simulator", "move_group"]
    refuse_absent(specs("cpu:move_group", "cpu:*", "rate:/scan", "cpu:node:/any", "path:goal:p50"), names)
    with pytest.raises(ConfigurationError) as refused:
        refuse_absent(specs("cpu:move_gruop"), names)
    assert str(refused.value).splitlines() == [
        "metric 'cpu:move_gruop': no process of the stack is called 'move_gruop'; it has move_group, simulator",
        "  → did you mean 'move_group'? ([tool.ldos] metrics)",
    ]
    with pytest.raises(ConfigurationError, match="it has no process that this machine shows"):
        refuse_absent(specs("cpu:*"), [])


def test_only_rates_are_better_when_higher():
    better = {spec.kind.value: declare(spec).better for spec in specs("rate:/a", "gap:/a", "cpu:a", "memory:a")}
    assert better == {"rate": Better.HIGHER, "gap": Better.LOWER, "cpu": Better.LOWER, "memory": Better.LOWER}


def test_name_of_a_declared_metric_is_taken():
    own = api.OwnMetric(name="cpu_planner", title="mine", unit="ms", better="lower", measure=lambda *_: 1.0)
    with pytest.raises(
        ConfigurationError, match=r"'cpu_planner' .* has the name of another metric: CPU time of planner"
    ):
        catalogue_of([own], specs("cpu:planner"))


def test_trace_alone_has_metrics_of_paths_and_topics(model):
    declared = specs("cpu:planner", "rate:/scan", "path:goal:p50")
    (found,) = api.extract_metrics(model, nominal_period_ns=2 * MS, declared=declared).values()
    assert list(found.measurements) == [*METRICS, "rate_scan", "path_goal_p50"]


def reported(model, text, **numbers):
    """Measures a metric of a trial with the stimulus's numbers."""
    (trial,) = model.trials.values()
    (spec,) = specs(text)
    metric = declare(spec)
    found = extract_trial(
        trial,
        model,
        stamps_ns={},
        nominal_period_ns=2 * MS,
        catalogue={metric.name: metric},
        outside=OutsideTrace(numbers=numbers),
    )
    return metric, found.measurements[metric.name]


def test_stimulus_number_has_the_declared_direction(model):
    metric, found = reported(model, "number:distance_m", distance_m=3.25, hits=2.0)
    assert (metric.name, metric.better, metric.unit, found.value) == ("number_distance_m", Better.LOWER, "m", 3.25)
    metric, found = reported(model, "number:hits:higher", distance_m=3.25, hits=2.0)
    assert (metric.name, metric.better, metric.unit, found.value) == ("number_hits", Better.HIGHER, "", 2.0)
    assert metric.asked_as == "number:hits:higher"
    assert found.source.name == "stimulus' numbers"


def test_unreported_number_has_a_reason(model):
    _, found = reported(model, "number:distanec_m", distance_m=3.25)
    assert found.value == Missing("the stimulus reported no number 'distanec_m': did you mean 'distance_m'?")
    _, found = reported(model, "number:distance_m")
    assert found.value == Missing("the stimulus reported no number 'distance_m': it reported none of this trial")


@pytest.mark.parametrize(
    ("text", "message"),
    [("number:", "names nothing to measure"), ("number:a:hihger", "did you mean 'higher'?")],
)
def test_invalid_number_is_refused(text, message):
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        specs(text)


def test_trace_alone_has_no_stimulus_numbers():
    assert in_traces(specs("number:a", "rate:/a", "cpu:a")) == specs("rate:/a")
