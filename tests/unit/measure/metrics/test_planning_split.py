"""Parts of T1 and T1mean, from perf's context switches."""

from __future__ import annotations

import pytest

from pytest_ldos.base.ros2 import Phase
from pytest_ldos.measure.metrics.latency import PlanningSplits
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.model import PlanRequest, TrialSpan
from pytest_ldos.trace.execution.scheduling import build_thread_states
from pytest_ldos.trace.perf import SWITCHES_FOLDER
from tests.builders.ctf import Event, Int, Packet, Record, TraceBuilder
from tests.builders.perf_data import PerfData

EPOCH_NS, MS = 1_700_000_000_000_000_000, 1_000_000
PLANNER, SIMULATOR, CARGO = 10, 20, 30
SPEED = Event("ldos:cpu_speed", 1, {"_work_ns": Int(64, signed=True)})
PHASES = {Phase.PLANNING: EPOCH_NS + 10 * MS, Phase.EXECUTING: EPOCH_NS + 30 * MS}
TRIAL = TrialSpan(
    goal_id="1", scenario="reach", index=0, begin_ns=EPOCH_NS, phases=PHASES, plan=None, end_ns=None, error_code=None
)


def splits(folder, *pids, switches=True):
    records = [Record(SPEED, 9 * MS, {"_work_ns": 7}, {"_vpid": pid}) for pid in pids]
    builder = TraceBuilder([SPEED], context={"_vpid": Int(32, signed=True)}, clock_offset=EPOCH_NS)
    builder.write(folder / "ust", {"ch_0": [Packet(records)]})
    data = PerfData()
    data.switch(5 * MS, 0, 0, PLANNER)
    data.switch(14 * MS, 0, PLANNER, SIMULATOR, preempted=True)
    data.switch(15 * MS, 0, SIMULATOR, CARGO)
    data.switch(21 * MS, 0, CARGO, PLANNER, preempted=True)
    data.switch(40 * MS, 0, PLANNER, 0)
    if switches:
        data.write(folder / SWITCHES_FOLDER / "001.data")
    trace = read_trace(folder)
    return PlanningSplits(trace, build_thread_states(trace), {PLANNER, SIMULATOR})


def test_planner_time_is_split_into_parts(tmp_path):
    found = splits(tmp_path, PLANNER).of(TRIAL)
    assert found == {
        "ran_ms": pytest.approx(13, abs=0.001),
        "waited_for_own_ms": pytest.approx(1, abs=0.001),
        "waited_for_strangers_ms": pytest.approx(6, abs=0.001),
        "blocked_ms": 0.0,
    }


def planned(*spans_ms):
    requests = [
        PlanRequest(begin_ns=EPOCH_NS + begin * MS, end_ns=EPOCH_NS + end * MS, cpu_work_ns=None)
        for begin, end in spans_ms
    ]
    return TrialSpan(**{**vars(TRIAL), "plan_requests": tuple(requests)})


def test_parts_of_the_planning_mean(tmp_path):
    """The first plan takes 8 ms, 2 of them waiting for other processes; the second takes 9 ms without waits."""
    found = splits(tmp_path, PLANNER).of_plans(planned((9, 17), (21, 30)))
    assert found == {
        "ran_ms": pytest.approx((5 + 9) / 2, abs=0.001),
        "waited_for_own_ms": pytest.approx(0.5, abs=0.001),
        "blocked_ms": 0.0,
        "plans_waited_for_strangers_ms": pytest.approx((8 * 9) ** 0.5 - (6 * 9) ** 0.5, abs=0.001),
    }


@pytest.mark.parametrize(
    "spans", [(), ((16, 20),), ((9, 17), (-50, -40))], ids=["none", "other processes alone", "unseen"]
)
def test_incomplete_plans_have_no_parts(tmp_path, spans):
    assert splits(tmp_path, PLANNER).of_plans(planned(*spans)) == {}


@pytest.mark.parametrize("pids", [(), (PLANNER, SIMULATOR), (77,)], ids=["none", "two", "unseen"])
def test_unidentified_planner_has_no_parts(tmp_path, pids):
    assert splits(tmp_path, *pids).of(TRIAL) == {}


def test_without_context_switches_there_are_no_parts(tmp_path):
    assert splits(tmp_path, PLANNER, switches=False).of(TRIAL) == {}


def test_unplanned_or_unrecorded_trial_has_no_parts(tmp_path):
    found = splits(tmp_path, PLANNER)
    early = {phase: time_ns - 100 * MS for phase, time_ns in PHASES.items()}
    for trial in (None, *(TrialSpan(**{**vars(TRIAL), "phases": phases}) for phases in ({}, early))):
        assert found.of(trial) == {}
