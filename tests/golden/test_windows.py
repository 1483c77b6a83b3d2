"""Recorded traces that are read in windows with any borders: the model is that of the trace read whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pytest_ldos.base.ros2 import BUILT_IN_PATHS, PathSpec
from pytest_ldos.measure.metrics.extract import extract_metrics
from pytest_ldos.trace.ctf import _decoder
from pytest_ldos.trace.ctf.files import find_files
from pytest_ldos.trace.ctf.read import names_of, open_in_windows, read_trace
from pytest_ldos.trace.execution.build import NEEDED_EVENTS, build_execution, build_execution_in_windows
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.build import build_flow
from tests.builders.chunks import assert_equal_tables, found_in, small_chunks
from tests.builders.representatives import representatives

TRACES = sorted(
    file.name.removesuffix(".tar.xz")
    for file in Path(__file__).parent.glob("*.tar.xz")
    if file.name not in {"barectf.tar.xz", "barectf_wraps.tar.xz", "truth.tar.xz"}
)


def assert_equal_models(found: ExecutionModel, expected: ExecutionModel) -> None:
    for name, frame in expected.frames().items():
        other = found.frames()[name]
        assert other.schema == frame.schema, name
        assert other.equals(frame, null_equal=True), name
    assert dict(found.unknown) == dict(expected.unknown)
    assert dict(found.unpaired) == dict(expected.unpaired)
    assert found.stats == expected.stats


def in_windows(trace: Path, borders: list[int], pids: list[int] | None = None) -> ExecutionModel:
    with open_in_windows(trace, borders_ns=borders) as windows:
        return build_execution_in_windows(windows, pids=pids)


def moments(trace: Path) -> np.ndarray:
    """Times of all events that the model reads."""
    tables = read_trace(trace, events=NEEDED_EVENTS).events.values()
    return np.unique(np.concatenate([table.timestamp_ns for table in tables]))


@pytest.mark.parametrize("name", representatives(TRACES, 2))
def test_any_windows_give_the_whole_model(golden, name):
    trace = golden(name)
    expected = build_execution(read_trace(trace, events=NEEDED_EVENTS))
    times = moments(trace)
    random = np.random.default_rng(sum(name.encode()))
    for count in (1, 3, 20):
        between = random.integers(times[0], times[-1] + 2, count)
        at_events = random.choice(times, count) + random.integers(0, 2, count)
        borders = np.unique(np.concatenate((between, at_events))).tolist()
        assert_equal_models(in_windows(trace, borders), expected)


@pytest.mark.parametrize("name", representatives(TRACES, 1))
def test_any_windows_give_the_whole_analysis(golden, name):
    """Links, topics, callbacks, executors, paths and goals, of windows and in chunks."""
    trace = golden(name)
    model = build_execution(read_trace(trace, events=NEEDED_EVENTS))
    random = np.random.default_rng(sum(name.encode()) + 1)
    times = moments(trace)
    paths = [*BUILT_IN_PATHS, *(PathSpec(name=f"{one} {other}", via=(one, other)) for one, other in hops(model))]
    flow, expected = found_in(model, paths)
    goals = extract_metrics(model, nominal_period_ns=2_000_000, flow=flow)
    borders = np.unique(random.integers(times[0], times[-1] + 2, 5)).tolist()
    with small_chunks(int(random.integers(200, 2000))):
        of_windows, found = found_in(in_windows(trace, borders), paths)
        assert_equal_tables(found, expected)
        assert of_windows.without_partner == flow.without_partner
        assert extract_metrics(of_windows.model, nominal_period_ns=2_000_000, flow=of_windows) == goals


def hops(model: ExecutionModel) -> list[tuple[str, str]]:
    """Pairs of topics of which messages of one led to messages of the other."""
    topic = {row: name for row, name in model.publishers.select("id", "topic").iter_rows() if name is not None}
    publisher = model.publications["publisher"]
    links = build_flow(model).hops
    of_links = zip(publisher.gather(links["from_publication"]), publisher.gather(links["to_publication"]), strict=True)
    return sorted({(topic[one], topic[other]) for one, other in of_links if {one, other} <= topic.keys()})[:4]


@pytest.mark.parametrize("name", representatives(["intra_process", "service_action", "late_start", "lifecycle"], 1))
def test_a_border_after_each_event_of_a_second(golden, name):
    trace = golden(name)
    expected = build_execution(read_trace(trace, events=NEEDED_EVENTS))
    times = moments(trace)
    middle = len(times) // 2
    assert_equal_models(in_windows(trace, (times[middle : middle + 120] + 1).tolist()), expected)


def test_windows_of_some_processes(golden):
    trace = golden("talker_listener")
    decoded = read_trace(trace, events=NEEDED_EVENTS)
    pids = build_execution(decoded).processes["pid"].to_list()[:1]
    times = moments(trace)
    borders = np.linspace(times[0], times[-1], 9).astype(np.int64)[1:-1].tolist()
    assert_equal_models(in_windows(trace, borders, pids), build_execution(decoded, pids=pids))


def test_borders_at_losses(golden):
    """Events lost before, at and behind a border."""
    trace = golden("discarded")
    decoded = read_trace(trace, events=NEEDED_EVENTS)
    edges = [
        edge for gap in decoded.stats.gaps[:4] for edge in (gap.from_ns, (gap.from_ns + gap.to_ns) // 2, gap.to_ns)
    ]
    borders = np.unique([edge + shift for edge in edges for shift in (0, 1)]).tolist()
    assert_equal_models(in_windows(trace, borders), build_execution(decoded))


def test_borders_in_trials(golden):
    trace = golden("workspace_mock")
    decoded = read_trace(trace, events=NEEDED_EVENTS)
    expected = build_execution(decoded)
    entered = expected.phases["time_ns"].to_list()
    assert len(expected.trials) == 3
    assert_equal_models(in_windows(trace, sorted({time + 1 for time in entered})), expected)


def some(borders: list[int]) -> list[int]:
    return sorted(set(borders[:: len(borders) // 30 + 1]))


@pytest.mark.parametrize("name", ["workspace_mock", "discarded"])
def test_borders_in_packets(golden, name):
    """In the middle of packets, with events on either side."""
    trace = golden(name)
    times = moments(trace)
    spans = np.array(
        _decoder.open_streams(names_of(find_files(trace)), threads=1, skip_corrupt=False).packet_spans(), dtype=np.int64
    )
    begin, end = spans[:, 0], spans[:, 1]
    middle = begin + (end - begin) // 2
    before, at, behind = (np.searchsorted(times, each) for each in (begin, middle, end + 1))
    borders = some(middle[(before < at) & (at < behind)].tolist())
    assert len(borders) > 5
    assert_equal_models(in_windows(trace, borders), build_execution(read_trace(trace, events=NEEDED_EVENTS)))


@pytest.mark.parametrize("name", ["service_action", "intra_process"])
def test_borders_in_callbacks(golden, name):
    trace = golden(name)
    expected = build_execution(read_trace(trace, events=NEEDED_EVENTS))
    runs = expected.callback_runs.drop_nulls("end_ns").select("start_ns", "end_ns").iter_rows()
    borders = some([(start + end) // 2 + 1 for start, end in runs if end > start + 2])
    assert len(borders) > 5
    assert_equal_models(in_windows(trace, borders), expected)
