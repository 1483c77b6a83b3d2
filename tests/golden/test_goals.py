"""Goals and metrics of recorded traces, against what the goal client of each recording stamped itself.

A trace is a row of `RECORDED`, an archive ``NAME.tar.xz`` and ``clients/NAME.jsonl``: the goal client's own lines
(`stack.lines`). `reduce.py` makes archives small.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_ldos.base.ros2 import BUILT_IN_PATHS, Ros2
from pytest_ldos.base.series import Invalid, Missing
from pytest_ldos.base.text import ns_to_ms
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.extract import (
    EXECUTING_DELAY,
    PLANNING_DELAY,
    TrialMetrics,
    extract_metrics,
    extract_trial,
    find_trial,
)
from pytest_ldos.measure.metrics.model import (
    CONTROL_PROBE,
    FEEDBACK,
    FEEDBACK_AND_STATUS,
    MARKERS,
    SIMULATOR_PROBE,
    STATUS,
)
from pytest_ldos.measure.trial.rig import measure_trials
from pytest_ldos.robot.stack.cpus import EVERYWHERE
from pytest_ldos.robot.stack.goals import ErrorCode
from pytest_ldos.robot.stack.lines import MoveReport, parse_event
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.build import NEEDED_EVENTS, build_execution
from pytest_ldos.trace.execution.model import ExecutionModel
from tests.builders.trials import trial
from tests.golden.reduce import reduce_trace

PERIOD_NS = 2_000_000
CLIENTS = Path(__file__).parent / "clients"

BY_PUBLICATIONS = {
    "T1": FEEDBACK.name,
    "T2": FEEDBACK_AND_STATUS.name,
    "T3": "/joint_states publications",
    "T4": STATUS.name,
}
BY_PROBES = {"T3": CONTROL_PROBE.name, "T5": SIMULATOR_PROBE.name}
BY_MARKERS = {**dict.fromkeys(("T1", "T2", "T2x", "T4"), MARKERS.name), "T3": CONTROL_PROBE.name}
PHASES = {"T1": ("planning", "executing"), "T2": ("executing", "result"), "T4": ("goal_sent", "result")}
NEAR_MS = {"T1": (-1.0, 1.0), "T2": (-0.5, 0.5), "T4": (-4.0, -1.0)}
"""Tolerance of publications against the client's stamps: only T4 has one sign, because it begins at the acceptance."""

ROS2_ONLY = [event for event in NEEDED_EVENTS if event in set(Ros2)]


@dataclass(frozen=True)
class Recorded:
    """A trace, and what its goals are measured by where they have a metric: its source by metric."""

    name: str
    goals: int = 1
    sources: Mapping[str, str] = field(default_factory=lambda: BY_PUBLICATIONS)


RECORDED = [
    Recorded("panda_baseline_1"),
    Recorded("panda_baseline_2_fastdds"),
    Recorded("panda_cpu_2"),
    Recorded("panda_flood_1_fastdds"),
    Recorded("panda_flood_2"),
    Recorded("panda_flood_sub_1"),
    Recorded("panda_unreachable_1"),
    Recorded("gz_panda_baseline", goals=3, sources={**BY_PUBLICATIONS, **BY_PROBES}),
    Recorded("workspace_mock", goals=3, sources=BY_MARKERS),
    Recorded("workspace_gz", goals=3, sources={**BY_MARKERS, **BY_PROBES}),
]


def reports_of(name: str) -> list[MoveReport]:
    events = [parse_event(line) for line in (CLIENTS / f"{name}.jsonl").read_text().splitlines()]
    return [event for event in events if isinstance(event, MoveReport)]


@cache
def model_of(directory: Path, events: Collection[str]) -> tuple[ExecutionModel, int]:
    """With the offset from the client's clock to the trace's."""
    trace = read_trace(directory, events=events)
    return build_execution(trace), trace.traces[0].clock_offset_ns


def measure(directory: Path, report: MoveReport, events: Collection[str] = NEEDED_EVENTS) -> TrialMetrics:
    model, offset_ns = model_of(directory, frozenset(events))
    trial = find_trial(report.goal_id, model, stamps_ns=report.stamps_ns, clock_offset_ns=offset_ns)
    return extract_trial(trial, model, stamps_ns=report.stamps_ns, nominal_period_ns=PERIOD_NS)


@pytest.fixture(params=RECORDED, ids=lambda recorded: recorded.name)
def recorded(request) -> Recorded:
    return request.param


@pytest.fixture
def measured(golden, recorded):
    """Each goal that was measured, as the client reported it and by the trace."""
    directory = golden(recorded.name)
    model, _ = model_of(directory, frozenset(NEEDED_EVENTS))
    reports = [each for each in reports_of(recorded.name) if not model.trials or each.goal_id in model.trials]
    return [(report, measure(directory, report)) for report in reports]


def stamped_ms(report: MoveReport, metric: str) -> float | None:
    first, last = PHASES[metric]
    if first not in report.stamps_ns or last not in report.stamps_ns:
        return None
    return ns_to_ms(report.stamps_ns[last] - report.stamps_ns[first])


def test_every_goal_of_the_client_is_found_and_no_other(golden, recorded, measured):
    model, _ = model_of(golden(recorded.name), frozenset(NEEDED_EVENTS))
    found = extract_metrics(model, nominal_period_ns=PERIOD_NS)
    assert len(found) == len(measured) == recorded.goals
    assert [found.trial for found in found.values()] == [each.trial for _, each in measured]


def test_latencies_are_the_clients(measured):
    """As far as the way of feedback, status and result to the client lets them; markers agree even better."""
    for report, found in measured:
        for name in PHASES:
            expected, value = stamped_ms(report, name), found.measurements[name].number
            assert (value is None) == (expected is None), name
            if value is not None and expected is not None:
                low, high = (-0.5, 0.5) if found.trial.marked else NEAR_MS[name]
                assert low <= value - expected <= high, name


def test_each_metric_has_a_source_or_a_reason(recorded, measured):
    for report, found in measured:
        for name, measurement in found.measurements.items():
            assert not isinstance(measurement.value, Invalid), measurement.value
            if measurement.number is None:
                assert measurement.source is None
                assert measurement.value.reason
                assert name not in recorded.sources or report.error_code != ErrorCode.SUCCESS
            else:
                assert measurement.number > 0
                assert measurement.source.name == recorded.sources[METRICS[name].refines or name]


@pytest.mark.parametrize("name", ["workspace_mock", "workspace_gz"])
def test_feedback_reaches_the_client_within_a_millisecond_or_two(golden, name):
    """MoveIt serves `/execute_trajectory` in addition to `/move_action`, and its feedback is not used here."""
    for report in (each for each in reports_of(name) if each.error_code == ErrorCode.SUCCESS):
        delays = measure(golden(name), report).reception_ns
        assert set(delays) == {PLANNING_DELAY, EXECUTING_DELAY}
        assert all(0 < each < 5_000_000 for each in delays.values())


def test_a_goal_that_could_not_be_planned(golden):
    """MoveIt gave up after 5 s with code -6, which is in no event."""
    (report,) = reports_of("panda_unreachable_1")
    assert report.error_code == ErrorCode.TIMED_OUT
    found = measure(golden("panda_unreachable_1"), report)
    assert found.trial.error_code is None
    for name in ("T1", "T2", "T3"):
        assert found.measurements[name].value == Missing("the trial never entered phase 'executing'")
    assert found.measurements["T4"].number == pytest.approx(5044, abs=1)


def test_mock_hardware_has_no_simulator(golden):
    (report,) = reports_of("panda_baseline_1")
    reason = "the trace has no simulator: neither its steps nor publications on /clock"
    assert measure(golden("panda_baseline_1"), report).measurements["T5"].value == Missing(reason)


def test_probes_against_publications(golden):
    """The publisher is less regular than the loop: its periods differ by half as much again.

    Steps and clock are nearer to each other, for the bridge publishes the clock of each step.
    """
    trace = golden("gz_panda_baseline")
    for report in reports_of("gz_panda_baseline"):
        probes, publications = (measure(trace, report, events).measurements for events in (NEEDED_EVENTS, ROS2_ONLY))
        assert probes["T3"].source == CONTROL_PROBE
        assert probes["T5"].source == SIMULATOR_PROBE
        assert not probes["T3"].source.is_approximate
        assert publications["T3"].source.name == "/joint_states publications"
        assert publications["T5"].source.name == "/clock publications"
        assert publications["T3"].source.is_approximate
        assert publications["T5"].source.is_approximate
        assert 1.4 < publications["T3"].number / probes["T3"].number < 1.8
        assert 0.7 < publications["T5"].number / probes["T5"].number < 1.0
        assert publications["T3"].details["mean_rate_hz"] == pytest.approx(499, abs=1)
        assert probes["T5"].details["real_time_factor"] == pytest.approx(0.998, abs=0.002)
        assert publications["T1"] == probes["T1"]


def test_run_without_client_markers_is_measured_by_publications(golden):
    """The conductor's way: the client's stamps say which goal of the trace is which trial."""
    (report,) = reports_of("panda_baseline_1")
    rig = SimpleNamespace(
        recorder=SimpleNamespace(directory=golden("panda_baseline_1")),
        stack=SimpleNamespace(pids=lambda: None, all_processes=dict),
        placement=EVERYWHERE,
        spec=StackSpec(),
    )
    made = trial(0, {}, goal_id=report.goal_id, stamps_ns=report.stamps_ns)
    (measured,) = measure_trials([made], rig, BUILT_IN_PATHS)
    assert measured.measurements["T1"].source == FEEDBACK
    assert measured.measurements["T4"].source.is_approximate
    assert "state feedback" in measured.segments_ns


def test_reduced_trace_gives_the_same_metrics(golden, tmp_path):
    (report,) = reports_of("panda_baseline_1")
    whole, reduced = golden("panda_baseline_1"), reduce_trace(golden("panda_baseline_1"), tmp_path / "reduced")
    assert measure(reduced, report) == measure(whole, report)
    counts = [len(read_trace(each)) for each in (whole, reduced)]
    assert counts[1] < counts[0] / 50
