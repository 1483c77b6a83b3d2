"""A model built window by window equals one built at once, with any borders and losses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ldos.base.ros2 import CARETS_OWN, Ros2
from pytest_ldos.trace.ctf.read import COUNT, Column, DecodedTrace
from pytest_ldos.trace.ctf.stats import Gap
from pytest_ldos.trace.execution import build
from pytest_ldos.trace.execution.build import NEEDED_EVENTS, READ_EVENTS, build_execution, build_execution_in_windows
from pytest_ldos.trace.execution.observed import Observed
from pytest_ldos.trace.execution.threads import ThreadCensus
from pytest_ldos.trace.execution.window_rows import WINDOWED_EVENTS, select_rows
from tests.builders.representatives import representatives
from tests.builders.ros2 import Recording
from tests.unit.trace.flow.test_random_systems import System, rules, steps


@dataclass
class TraceInMemory:
    """Like `WindowedTrace`, for a decoded trace."""

    decoded: DecodedTrace
    borders: list[int]
    threads: int = 2

    @property
    def windows(self):
        edges = [-(1 << 63), *self.borders, 1 << 63]
        return tuple((begin, end - 1) for begin, end in pairwise(edges))

    def read(self, *, events, fields=None, window=None):
        del fields
        first, last = window or (-(1 << 63), (1 << 63) - 1)
        tables = {
            name: select_rows(table, (table.timestamp_ns >= first) & (table.timestamp_ns <= last))
            for name, table in self.decoded.events.items()
            if name in events
        }
        return replace(self.decoded, events=tables)

    def count(self, *, events, by):
        del by  # each event is a combination of its own
        return {
            name: replace(table, columns={**table.columns, COUNT: Column(name=COUNT, values=np.ones(len(table), int))})
            for name, table in self.decoded.events.items()
            if name in events
        }


def assert_equal(decoded, borders):
    found = build_execution_in_windows(TraceInMemory(decoded, borders))
    with patch.object(build, "_RECENT", 0):  # late rows are inserted at the end
        alone = build_execution_in_windows(TraceInMemory(decoded, borders, threads=1))
    expected = build_execution(decoded)
    for name, frame in expected.frames().items():
        assert found.frames()[name].equals(frame, null_equal=True), (name, found.frames()[name], frame)
        assert alone.frames()[name].equals(frame, null_equal=True), (name, alone.frames()[name], frame)
    assert (found.unknown, found.unpaired, found.stats) == (expected.unknown, expected.unpaired, expected.stats)
    assert found.missing_events == alone.missing_events == expected.missing_events
    assert (alone.unknown, alone.unpaired) == (expected.unknown, expected.unpaired)
    return found


def times_of(decoded):
    return sorted({time for table in decoded.events.values() for time in table.timestamp_ns.tolist()})


def test_unknown_subscriptions_have_equal_numbers():
    """One buffer has an enqueue in the first window alone, another one a dequeue in the second."""
    recording = Recording()
    thread = recording.process().thread().at(100)
    thread.emit(Ros2.RING_BUFFER_ENQUEUE, buffer=0x10, index=0, size=1, overwritten=0)
    thread.emit(Ros2.EXECUTOR_GET_NEXT_READY)  # ends the call
    thread.at(200).emit(Ros2.RING_BUFFER_DEQUEUE, buffer=0x20, index=0, size=0)
    model = assert_equal(recording.trace(), [150])
    assert len(model.subscriptions) == 2


def test_waits_of_one_thread_at_one_time_end_together():
    recording = Recording()
    thread = recording.process().thread()
    for _ in range(2):
        thread.at(100).emit(Ros2.EXECUTOR_WAIT_FOR_WORK, timeout=-1)
    thread.at(300).emit(Ros2.EXECUTOR_GET_NEXT_READY)
    model = assert_equal(recording.trace(), [200])
    assert model.waits["end_ns"].null_count() == 0


@pytest.mark.parametrize("recent", [0, 3, build._RECENT])
def test_late_rows_of_old_calls_are_in_time_order(recent):
    """A thread's last take may be complete several windows later."""
    recording = Recording()
    process = recording.process()
    node = process.node("/node")
    subscription, publisher = node.subscription("/in"), node.publisher("/out")
    slow, busy = process.thread(1), process.thread(2)
    message = busy.at(1000).publish(publisher)
    for at in (1100, 1500):
        slow.at(at).take(subscription, message)
    for number in range(20):
        busy.at(1110 + 50 * number).take(subscription, message)
    with patch.object(build, "_RECENT", recent):
        model = assert_equal(recording.trace(), list(range(1105, 2100, 150)))
    assert len(model.takes) == 22
    assert model.takes["time_ns"].is_sorted()


RMW = {Ros2.RMW_PUBLISH, Ros2.RMW_TAKE}


@settings(max_examples=6, deadline=None)
@given(
    rules,
    steps,
    st.lists(st.floats(0, 1), min_size=1, max_size=6),
    st.booleans(),
    st.sampled_from([set(), RMW, {*RMW, Ros2.RCL_PUBLISH}, {*RMW, Ros2.RING_BUFFER_DEQUEUE}]),
)
def test_any_system_with_any_borders(links, played, places, has_lost, missing):
    system = System(links)
    system.play(played)
    decoded = system.recording.trace(events=NEEDED_EVENTS - missing)
    times = times_of(decoded)
    borders = sorted({int(times[0] + place * (times[-1] - times[0] + 1)) for place in places})
    if has_lost:
        stream = replace(decoded.stats.streams[0], gaps=(Gap(borders[0] - 3, borders[0] + 3, 1, 0),))
        decoded = replace(decoded, stats=replace(decoded.stats, streams=(stream, *decoded.stats.streams[1:])))
    assert_equal(decoded, borders)


def system_of_one_callback():
    recording = Recording()
    process = recording.process()
    node = process.node("/node")
    subscription, publisher = node.subscription("/in"), node.publisher("/out")
    thread = process.thread()
    source = process.node("/source").publisher("/in")
    message = thread.at(recording.moment + 1000).publish(source)
    with thread.receiving(subscription, message):
        thread.spend(500)
        thread.publish(publisher)
        thread.spend(500)
    thread.wait(thread.now + 100)
    return recording.trace()


def test_border_after_each_event():
    decoded = system_of_one_callback()
    for time in times_of(decoded)[::3]:
        assert_equal(decoded, [time + 1])
    model = assert_equal(decoded, [time + 1 for time in times_of(decoded)])
    assert len(model.callback_runs) == 1
    assert model.callback_runs["end_ns"].null_count() == 0
    assert len(model.publications) == 2
    assert model.publications["rclcpp_ns"].null_count() == 0


@pytest.mark.parametrize("name", representatives(sorted(WINDOWED_EVENTS), 3))
def test_lost_event_at_a_border(name):
    """Any event of any kind, with the border before and after it."""
    decoded = system_of_one_callback()
    table = decoded.events.get(name)
    for row in range(0 if table is None else len(table)):
        time = int(table.timestamp_ns[row])
        stream = replace(decoded.stats.streams[0], gaps=(Gap(time - 1, time + 1, 1, 0),))
        left = {**decoded.events, name: select_rows(table, np.arange(len(table)) != row)}
        lossy = replace(decoded, events=left, stats=replace(decoded.stats, streams=(stream,)))
        for border in (time - 1, time, time + 1):
            assert_equal(lossy, [border])


def test_census_covers_all_events_of_the_model(monkeypatch):
    """Threads are counted by a list of event names; an unlisted event would have no thread."""
    asked = set()
    original = Observed.events
    monkeypatch.setattr(Observed, "events", lambda self, name: asked.add(str(name)) or original(self, name))
    build_execution(system_of_one_callback())
    assert asked == READ_EVENTS - CARETS_OWN.keys()  # which have the threads of ROS 2's
    assert WINDOWED_EVENTS <= READ_EVENTS


def test_census_of_no_event_is_empty():
    assert not ThreadCensus(()).names
