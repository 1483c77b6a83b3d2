"""Time windows: each event is in exactly one, and a growing trace is refused."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from pytest_ldos.base.errors import ConfigurationError, TraceUnreadable
from pytest_ldos.trace.ctf.read import open_in_windows, read_trace
from tests.builders.ctf import Event, Int, Packet, Record, TraceBuilder
from tests.builders.long_trace import PERIOD_NS, write_long_trace

START = "app:start"


@pytest.fixture
def trace(tmp_path):
    return write_long_trace(tmp_path / "trace", packets=12)


def handles(trace, **options):
    """Times and handles of the events in each window."""
    with open_in_windows(trace, **options) as opened:
        found = [opened.read(events={START}, window=window).events[START] for window in opened.windows]
    return [(table.timestamp_ns, table["handle"]) for table in found]


@pytest.mark.parametrize(
    "options", [{"window_ns": 2 * PERIOD_NS}, {"window_bytes": 20_000}, {"borders_ns": [5, 10**10]}]
)
def test_windows_have_each_event_once_and_in_order(trace, options):
    whole = read_trace(trace, events={START}).events[START]
    parts = handles(trace, **options)
    assert len(parts) > 2
    times, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    assert np.array_equal(times, whole.timestamp_ns)
    assert np.array_equal(values, whole["handle"])


def test_windows_without_length_have_similar_sizes(trace):
    sizes = [len(times) for times, _ in handles(trace, window_bytes=20_000)]
    assert max(sizes) < 2 * sum(sizes) / len(sizes)


def test_event_at_a_border_belongs_to_the_later_window(trace):
    times = read_trace(trace, events={START}).events[START].timestamp_ns
    border = int(times[100])
    before, behind = handles(trace, borders_ns=[border])
    assert before[0][-1] < border == behind[0][0]


def test_growing_trace_is_refused(trace):
    stream = trace / "s_1"
    written = stream.read_bytes()
    stream.write_bytes(written[: len(written) // 12 * 11])
    with open_in_windows(trace, window_ns=PERIOD_NS) as opened:
        opened.read(events={START}, window=opened.windows[0])
        stream.write_bytes(written)
        with pytest.raises(TraceUnreadable, match="s_1: was written to while the trace was read in windows") as caught:
            opened.read(events={START}, window=opened.windows[1])
    assert "lttng stop" in str(caught.value.remedy)


def test_a_stream_that_is_cut_is_refused(trace):
    """Its pages are mapped; a read behind the end of the file would end the process."""
    with open_in_windows(trace, window_ns=PERIOD_NS) as opened:
        (trace / "s_1").write_bytes(b"")
        for read in (lambda: opened.read(events={START}), lambda: opened.count(events={START}, by=["vpid"])):
            with pytest.raises(TraceUnreadable, match="s_1: was written to"):
                read()


def test_a_stream_that_disappears_is_refused(trace):
    with open_in_windows(trace, window_ns=PERIOD_NS) as opened:
        (trace / "s_1").unlink()
        with pytest.raises(TraceUnreadable, match="s_1"):
            opened.read(events={START}, window=opened.windows[1])


@pytest.mark.parametrize("window_ns", [0, -1])
def test_a_window_without_a_length_is_refused(trace, window_ns):
    with (
        pytest.raises(ConfigurationError, match="needs a length"),
        open_in_windows(trace, window_ns=window_ns) as opened,
    ):
        assert not opened


def test_too_many_windows_are_refused(trace):
    with pytest.raises(ConfigurationError, match="make them longer"), open_in_windows(trace, window_ns=1) as opened:
        assert not opened


def test_a_trace_without_packets_is_one_window(tmp_path):
    trace = TraceBuilder([Event(START, 1, {"_handle": Int(64)})]).write(tmp_path / "empty", {"s": []})
    with open_in_windows(trace, window_ns=10) as opened:
        assert len(opened.windows) == 1
        assert not len(opened.read(events={START}, window=opened.windows[0]))


def test_an_archive_is_unpacked_once(trace, tmp_path):

    archive = shutil.make_archive(str(tmp_path / "packed"), "gztar", trace)
    packed = handles(archive, window_ns=3 * PERIOD_NS)
    assert [len(times) for times, _ in packed] == [len(times) for times, _ in handles(trace, window_ns=3 * PERIOD_NS)]


def test_packets_that_overlap_a_border_are_read_on_both_sides(tmp_path):
    event = Event(START, 1, {"_handle": Int(64)})
    packet = Packet([Record(event, time, {"_handle": time}) for time in (10, 20, 30, 40)])
    trace = TraceBuilder([event]).write(tmp_path / "one", {"s": [packet]})
    first = int(read_trace(trace).events[START].timestamp_ns[0])
    parts = handles(trace, borders_ns=[first + 10, first + 25])
    assert [values.tolist() for _, values in parts] == [[10], [20, 30], [40]]
