"""States and busy shares of executor threads."""

from __future__ import annotations

import pytest

from pytest_ldos import api
from pytest_ldos.base.ros2 import Ros2
from pytest_ldos.trace.ctf.stats import Gap
from pytest_ldos.trace.execution.build import NEEDED_EVENTS
from pytest_ldos.trace.flow.summary import busy_shares, executor_states, without_states
from tests.builders.ros2 import Message, Recording


class App:
    def __init__(self) -> None:
        self.recording = Recording()
        self.process = self.recording.process()
        node = self.process.node("/app")
        self.timer, self.subscription, self.service = node.timer(100), node.subscription("/in"), node.service("/serve")
        self.thread = self.process.thread()

    def states(self, thread=1, **options):
        model = self.recording.model(**options)
        number = model.threads["tid"].to_list().index(thread)
        states = executor_states(model)
        return states.filter(states["thread"] == number).select("begin_ns", "end_ns", "state").rows()


def test_one_thread_waits_processes_and_executes():
    app = App()
    app.thread.at(1000).wait(2000)
    app.thread.at(2010).execute(app.timer)
    with app.thread.at(2020).running(app.timer):
        app.thread.at(2500)
    app.thread.at(2510).emit(Ros2.EXECUTOR_GET_NEXT_READY)
    app.thread.at(2520).execute(app.subscription)
    with app.thread.at(2530).receiving(app.subscription, Message(5)):
        app.thread.at(2700)
    app.thread.at(2710).wait(3000)
    assert app.states() == [
        (1000, 2000, "waiting"),
        (2000, 2010, "processing"),
        (2010, 2500, "executing"),
        (2500, 2520, "processing"),
        (2520, 2700, "executing"),
        (2700, 2710, "processing"),
        (2710, 3000, "waiting"),
    ]


def test_callbacks_without_recorded_choice():
    """Services and actions have no recorded choice."""
    app = App()
    app.thread.at(1000).wait(2000)
    with app.thread.at(2100).running(app.service):
        app.thread.at(2300)
    app.thread.at(2400).wait(2500)
    assert app.states() == [
        (1000, 2000, "waiting"),
        (2000, 2100, "processing"),
        (2100, 2300, "executing"),
        (2300, 2400, "processing"),
        (2400, 2500, "waiting"),
    ]


def test_spinning_callback_is_executing():
    app = App()
    with app.thread.at(1000).running(app.timer):
        app.thread.at(1100).wait(1500)
        with app.thread.at(1600).running(app.subscription):
            app.thread.at(1700)
        app.thread.at(2000)
    assert app.states() == [(1000, 2000, "executing")]


def test_callbacks_after_a_lost_end_are_executing():
    app = App()
    with app.thread.at(1000).running(app.timer, ends=False):
        pass
    app.thread.at(2000).wait(3000)
    with app.thread.at(3100).running(app.subscription):
        app.thread.at(3300)
    expected = [(2000, 3000, "waiting"), (3000, 3100, "processing"), (3100, 3300, "executing")]
    assert app.states(gaps=[Gap(1000, 2000, 1, 0)]) == expected


def test_wait_with_lost_end_ends_at_the_next_state():
    app = App()
    app.thread.at(1000).emit(Ros2.EXECUTOR_WAIT_FOR_WORK, timeout=-1)
    with app.thread.at(2000).running(app.timer):
        app.thread.at(2100)
    app.thread.at(2200).wait(3000)
    assert app.states(gaps=[Gap(1000, 2000, 1, 0)]) == [
        (2000, 2100, "executing"),
        (2100, 2200, "processing"),
        (2200, 3000, "waiting"),
    ]


def test_threads_of_one_executor_look_one_at_a_time():
    """The time between a callback and the next wait is spent queueing to look."""
    app = App()
    one, two = app.process.thread(11), app.process.thread(12)
    one.at(1000).wait(2000)
    with one.at(2100).running(app.timer):
        one.at(2500)
    two.at(2010).wait(3000)
    with two.at(3100).running(app.timer):
        two.at(3500)
    one.at(3010).wait(4000)
    assert app.states(11) == [
        (1000, 2000, "waiting"),
        (2000, 2100, "processing"),
        (2100, 2500, "executing"),
        (2500, 3010, "waiting"),
        (3010, 4000, "waiting"),
    ]
    assert app.states(12) == [(2010, 3000, "waiting"), (3000, 3100, "processing"), (3100, 3500, "executing")]


def test_busy_shares():
    app = App()
    app.thread.at(0).wait(600)
    with app.thread.at(700).running(app.timer):
        app.thread.at(1000)
    (row,) = busy_shares(app.recording.model()).iter_rows(named=True)
    assert row["observed_ns"] == 1000
    assert (row["waiting"], row["processing"], row["executing"]) == pytest.approx((0.6, 0.1, 0.3))


def test_without_executors_there_are_no_states():
    model = Recording().model()
    assert len(executor_states(model)) == len(busy_shares(model)) == 0


def test_executor_without_events_is_counted_and_has_no_states():
    """rclcpp's events executor traces only callbacks. Other processes are not affected."""
    app = App()
    other = app.recording.process(2)
    subscription, silent = other.node("/silent").subscription("/in"), other.thread(2)
    app.thread.at(1000).wait(2000)
    app.thread.at(2010).execute(app.timer)
    with app.thread.at(2020).running(app.timer):
        app.thread.at(2500)
    app.thread.at(2510).wait(3000)
    for start in (4000, 5000):
        with silent.at(start).receiving(subscription, Message(start)):
            silent.at(start + 100)
    model = app.recording.model()
    assert set(executor_states(model)["thread"]) == set(model.waits["thread"])
    assert len(busy_shares(model)) == 1
    assert without_states(model) == 1


def test_recorded_trace_without_executor_events(golden):
    trace = api.read_trace(golden("talker_listener"), events={each for each in NEEDED_EVENTS if "executor" not in each})
    model = api.build_execution(trace)
    assert len(model.callback_runs) > 100
    assert busy_shares(model).is_empty()
    assert without_states(model) == 2
