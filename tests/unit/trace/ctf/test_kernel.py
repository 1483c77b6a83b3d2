"""Kernel traces in the format of lttng-modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ldos.trace.ctf.read import read_trace
from tests.builders.ctf import Array, Event, Field, Int, Packet, Record, TraceBuilder
from tests.builders.tracers import ModulesBuilder
from tests.oracles.agreement import Outcome, compare_with_babeltrace
from tests.oracles.babeltrace import why_unavailable

COMM = Array(Int(8, signed=True, text=True), 16)
PID = Int(32, signed=True)
SWITCH = Event(
    "sched_switch",
    4,
    {
        "_prev_comm": COMM,
        "_prev_tid": PID,
        "_prev_prio": PID,
        "_prev_state": Int(64, signed=True),
        "_next_comm": COMM,
        "_next_tid": PID,
        "_next_prio": PID,
    },
)
WAKEUP = Event("sched_wakeup", 5, {"_comm": COMM, "_tid": PID, "_prio": PID, "_target_cpu": PID})
WAKING = Event("sched_waking", 6, {"_comm": COMM, "_tid": PID, "_prio": PID, "_target_cpu": PID})
MIGRATE = Event(
    "sched_migrate_task", 300, {"_comm": COMM, "_tid": PID, "_prio": PID, "_orig_cpu": PID, "_dest_cpu": PID}
)
CONTEXT: dict[str, Field] = {"_pid": PID, "_procname": Array(Int(8, text=True), 17)}
KERNEL: dict[str, str | int] = {
    "domain": "kernel",
    "sysname": "Linux",
    "kernel_release": "6.1.0-25-rt-amd64",
    "tracer_name": "lttng-modules",
    "tracer_minor": 13,
}


def comm(text: str, size: int = 16) -> list[int]:
    return list(text.encode().ljust(size, b"\0"))


def records() -> list[Record]:
    context = {"_pid": 1, "_procname": comm("swapper/0", 17)}
    switch = {
        "_prev_comm": comm("swapper/0"),
        "_prev_tid": 0,
        "_prev_prio": 20,
        "_prev_state": 0,
        "_next_comm": comm("controller_mana"),
        "_next_tid": 41,
        "_next_prio": -51,
    }
    woken = {"_comm": comm("controller_mana"), "_tid": 41, "_prio": -51, "_target_cpu": 1}
    moved = {"_comm": comm("move_group"), "_tid": 7, "_prio": 20, "_orig_cpu": 1, "_dest_cpu": 0}
    wanted = [(WAKING, woken), (WAKEUP, woken), (SWITCH, switch), (MIGRATE, moved)]
    return [Record(event, 1000 + 10 * i, values, context) for i, (event, values) in enumerate(wanted)]


@pytest.fixture(params=["compact", "large"])
def kernel(request, tmp_path) -> Path:
    builder = ModulesBuilder(
        [SWITCH, WAKEUP, WAKING, MIGRATE],
        header=request.param,
        context=CONTEXT,
        instances=True,
        environment=KERNEL,
        clock_offset=1_700_000_000_000_000_000,
    )
    streams = {f"channel0_{cpu}": [Packet(records(), cpu=cpu, instance=cpu)] for cpu in range(2)}
    builder.write(tmp_path / "kernel", streams)
    return tmp_path


def test_scheduler_events(kernel):
    trace = read_trace(kernel)
    switch = trace.events["sched_switch"]
    assert list(switch.columns["prev_comm"]) == ["swapper/0"] * 2
    assert list(switch.columns["next_comm"]) == ["controller_mana"] * 2
    assert switch["next_prio"].tolist() == [-51, -51]
    assert switch.cpu_id.tolist() == [0, 1]
    assert switch.timestamp_ns.tolist() == [1_700_000_000_000_001_020] * 2
    assert list(switch.columns["procname"]) == ["swapper/0"] * 2
    assert trace.events["sched_migrate_task"]["dest_cpu"].tolist() == [0, 0]
    assert trace.events["sched_waking"]["target_cpu"].tolist() == [1, 1]


def test_domain_and_host_of_a_kernel_trace(kernel):
    (info,) = read_trace(kernel).traces
    assert (info.domain, info.host, info.uid, info.pid) == ("kernel", "builder", None, None)
    assert info.environment["kernel_release"] == "6.1.0-25-rt-amd64"


@pytest.mark.skipif(bool(why_unavailable()), reason=why_unavailable() or "available")
def test_decoder_agrees_with_babeltrace2(kernel):
    agreement = compare_with_babeltrace(kernel)
    assert (agreement.outcome, agreement.difference, agreement.events) == (Outcome.EQUAL, "", 8)


def test_user_space_and_kernel_are_merged(kernel):
    """Both domains share a clock: one table per name, in time order."""
    tick = Event("app:tick", 1, {"_value": Int(32)})
    user = TraceBuilder([tick], identity=5, clock_offset=1_700_000_000_000_000_000)
    user.write(kernel / "ust/uid/0/64-bit", {"s_0": [Packet([Record(tick, 1015, {"_value": 1})])]})
    trace = read_trace(kernel)
    assert {info.domain for info in trace.traces} == {"kernel", "ust"}
    wakeup, switch = trace.events["sched_wakeup"].timestamp_ns, trace.events["sched_switch"].timestamp_ns
    assert wakeup[0] < trace.events["app:tick"].timestamp_ns[0] < switch[0]
