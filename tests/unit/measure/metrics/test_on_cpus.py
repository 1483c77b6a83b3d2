"""Share of a stack's work on its CPUs, from recorded traces with and without context switches."""

from __future__ import annotations

import pytest

from pytest_ldos.base.ros2 import Phase
from pytest_ldos.measure.metrics.on_cpus import Placed, find_work
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.model import TrialSpan
from pytest_ldos.trace.execution.scheduling import build_thread_states
from pytest_ldos.trace.perf import SWITCHES_FOLDER
from tests.builders.ctf import Event, Int, Packet, Record, TraceBuilder
from tests.builders.perf_data import PerfData

EPOCH_NS, MS = 1_700_000_000_000_000_000, 1_000_000
PLANNER, SIMULATOR, CARGO = 10, 20, 30
CPUS = {PLANNER: {2}, SIMULATOR: {3}}
STEP = Event("ldos:sim_step", 1, {"_step": Int(64)})
TRIAL = TrialSpan(
    goal_id="1",
    scenario="reach",
    index=0,
    begin_ns=EPOCH_NS + 10 * MS,
    phases={Phase.GOAL_SENT: EPOCH_NS + 11 * MS, Phase.RESULT: EPOCH_NS + 30 * MS},
    plan=None,
    end_ns=None,
    error_code=None,
)


def work(folder, *, switches: bool, cpus=CPUS) -> Placed | None:
    """Events of two processes, on CPUs 2 and 3, within the trial and before; in it, the planner ran 12 of 16 ms on 2."""
    events = {2: [(9, PLANNER), (12, PLANNER), (13, PLANNER), (14, CARGO)], 3: [(15, SIMULATOR), (16, PLANNER)]}
    packets = {
        f"ch_{cpu}": [Packet([Record(STEP, ms * MS, {"_step": ms}, {"_vpid": pid}) for ms, pid in records], cpu=cpu)]
        for cpu, records in events.items()
    }
    builder = TraceBuilder([STEP], context={"_vpid": Int(32, signed=True)}, clock_offset=EPOCH_NS)
    builder.write(folder / "ust", packets)
    if switches:
        data = PerfData()
        data.switch(5 * MS, 2, 0, PLANNER)
        data.switch(22 * MS, 2, PLANNER, CARGO)
        data.switch(25 * MS, 3, 0, PLANNER)
        data.switch(29 * MS, 3, PLANNER, 0)
        data.write(folder / SWITCHES_FOLDER / "001.data")
    trace = read_trace(folder)
    return find_work(trace, build_thread_states(trace), cpus)(TRIAL)


def test_cpu_time_counts_if_context_switches_were_recorded(tmp_path):
    found = work(tmp_path, switches=True)
    assert found.is_time
    assert found.on == pytest.approx(12 * MS, abs=10)
    assert found.whole == pytest.approx(16 * MS, abs=10)


def test_events_count_without_context_switches(tmp_path):
    assert work(tmp_path, switches=False) == Placed(3, 4, is_time=False)


@pytest.mark.parametrize("switches", [True, False])
def test_a_stack_without_cpus_of_its_own_has_no_such_work(tmp_path, switches):
    assert work(tmp_path, switches=switches, cpus={}) is None


def test_a_process_that_left_no_trace_is_unknown(tmp_path):
    assert work(tmp_path, switches=True, cpus={77: {2}}) is None
