"""Traces of other writers than LTTng: babeltrace2, barectf, and collections of others."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from pytest_ldos.base.errors import TraceUnreadable
from pytest_ldos.trace.ctf.read import open_in_windows, read_trace
from pytest_ldos.trace.ctf.stats import describe_damage
from tests.oracles.agreement import Outcome, compare_with_babeltrace
from tests.oracles.babeltrace import why_unavailable, write_with_babeltrace

pytestmark = pytest.mark.skipif(bool(why_unavailable()), reason=why_unavailable() or "available")

COLLECTIONS = "CTF_COLLECTIONS"
"""Directories of foreign traces, separated by colons (see `benchmarks.foreign_traces`)."""
TIMES = [0, 5, 5, 1_000_000, 7_000_000_001, 40_000_000_000, 2**52 + 1, 2**53 + 3, 2**53 + 4]
CLOCKS = [None, (10**9, 0, 0), (10**9, 1_700_000_000, 999_999_999), (3 * 10**9, 5, 7), (2**26 + 1, -100, 32_767)]


@pytest.mark.parametrize("packets", [True, False])
@pytest.mark.parametrize("clock", CLOCKS)
def test_trace_written_by_babeltrace2(tmp_path, clock, packets):
    trace = write_with_babeltrace(tmp_path / "written", clock=clock, packets=packets, times=TIMES)
    agreement = compare_with_babeltrace(trace)
    assert (agreement.outcome, agreement.difference, agreement.events) == (Outcome.EQUAL, "", len(TIMES))
    decoded = read_trace(trace)
    table, (info,) = decoded.events["app:all"], decoded.traces
    steps = np.arange(len(TIMES))
    assert (info.clock, info.environment["hostname"]) == ("beat" if clock else "", 'a "quoted"\nhost')
    assert table["vpid"].tolist() == (-steps).tolist()
    assert table["odd"].tolist() == (steps - (1 << 36)).tolist()
    assert list(table.columns["text"]) == [f"text {step}" * (step % 3) for step in steps]
    assert list(table.columns["what.text"]) == [f"option {step}" if step % 2 else None for step in steps]
    assert table.cpu_id.tolist() == ([0] * 4 + [1] * 5 if packets else [-1] * 9)
    if clock is None:
        assert not table.timestamp_ns.any()


@pytest.mark.parametrize(("part", "events"), [("control", 140), ("plain", 40)])
def test_trace_written_by_barectf(golden, part, events):
    agreement = compare_with_babeltrace(golden("barectf") / part)
    assert (agreement.outcome, agreement.difference, agreement.events) == (Outcome.EQUAL, "", events)


def test_values_written_by_barectf(golden):
    """All values are read; twice, the buffer was full and a cycle and its note were lost."""
    trace = read_trace(golden("barectf") / "control")
    cycle = trace.events["cycle"]
    steps = cycle["step"].astype(int) // 3
    assert (len(cycle), trace.stats.discarded_events) == (118, 4)
    assert {*range(60)} - {*steps.tolist()} == {45}
    assert cycle["error"].tolist() == (-100 * steps).tolist()
    assert np.array_equal(cycle["torque"], steps / 3)
    assert list(cycle.columns["joints"])[5] == [-steps[5], 3 * steps[5], 7]
    assert np.all(np.diff(cycle.timestamp_ns) > 0)
    plain = read_trace(golden("barectf") / "plain")
    assert plain.events["once"]["value"].tolist() == [1_000_000_007 * i for i in range(40)]
    assert plain.traces[0].clock == ""


def test_wrapped_clock_in_64_bit_fields_is_refused(golden):
    """barectf writes its 32-bit clock to 64-bit fields: events would appear 4295 s too early."""
    trace = golden("barectf_wraps") / "fields_64"
    with pytest.raises(TraceUnreadable, match=r"time goes back by 4294\.9\d* s") as caught:
        read_trace(trace)
    assert caught.value.path == trace / "stream"
    assert "64-bit clock" in caught.value.remedy
    assert compare_with_babeltrace(trace).outcome is Outcome.BOTH_REFUSE
    stats = read_trace(trace, on_corrupt="skip").stats
    assert describe_damage(stats) == "1 backward steps"
    with pytest.raises(TraceUnreadable, match="time goes back"), open_in_windows(trace) as opened:
        opened.read(events={"cycle"})


def test_clock_that_wraps_in_its_fields_continues(golden):
    """40 cycles of 500 µs; babeltrace2 does not carry the clock over packets, and fails at the second wrap."""
    cycle = read_trace(golden("barectf_wraps") / "fields_32").events["cycle"]
    assert cycle["step"].tolist() == list(range(40))
    assert np.diff(cycle.timestamp_ns).tolist() == [500_000] * 39
    assert cycle.timestamp_ns[0] < 2**32 * 1000 < cycle.timestamp_ns[-1]


def collected() -> list[Path]:
    folders = [Path(folder) for folder in os.environ.get(COLLECTIONS, "").split(":") if folder]
    return sorted(metadata.parent for folder in folders for metadata in folder.rglob("metadata"))


@pytest.mark.skipif(not collected(), reason=f"{COLLECTIONS} names no directory with traces")
@pytest.mark.parametrize("trace", collected(), ids=str)
def test_collected_trace(trace):
    """The decoder reads all that babeltrace2 reads; traces refused by babeltrace2 alone have unordered or truncated streams."""
    agreement = compare_with_babeltrace(trace)
    assert agreement.outcome not in (Outcome.DIFFERENT, Outcome.ONLY_WE_REFUSE), agreement
