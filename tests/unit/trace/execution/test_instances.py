"""Instances: publications, takes, callback runs, executors, requests, transitions, clocks."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.ros2 import Caret, Ros2
from pytest_ldos.trace.ctf.stats import Gap
from pytest_ldos.trace.execution.threads import shift_clocks
from tests.builders.ros2 import Message, Recording

GAP = Gap(0, 10_000, 3, 0)


class App:
    """One process with a node, a timer, a publisher and a subscription."""

    def __init__(self) -> None:
        self.recording = Recording()
        self.process = self.recording.process()
        self.node = self.process.node("/app")
        self.publisher = self.node.publisher("/out")
        self.subscription = self.node.subscription("/in")
        self.timer = self.node.timer(100)
        self.service = self.node.service("/serve")
        self.thread = self.process.thread()

    def runs(self, **options):
        runs = self.recording.model(**options).callback_runs
        return runs.select("start_ns", "end_ns", "parent").rows()


def start(app, at, entity):
    app.recording.emit(Ros2.CALLBACK_START, at, callback=entity.callback, is_intra_process=0)


def end(app, at, entity):
    app.recording.emit(Ros2.CALLBACK_END, at, callback=entity.callback)


def test_a_publication_has_the_times_of_all_layers():
    app = App()
    app.thread.at(100).publish(app.publisher)
    app.thread.at(200).publish(app.publisher, layers=(Ros2.RCL_PUBLISH,))
    app.thread.at(300).publish(app.publisher, layers=())
    sent = app.recording.model().publications
    assert sent.select("rclcpp_ns", "rcl_ns", "time_ns").rows() == [
        (100, 101, 102),
        (None, 200, 201),
        (None, None, 300),
    ]
    assert sent["source_ns"].to_list() == [102, 201, 300]


def test_concurrent_publications_are_separated_by_thread():
    """Both threads publish the same message address at the same times."""
    app = App()
    other = app.process.thread(2)
    fields = {"message": 0x77}
    for thread, first in ((app.thread, 100), (other, 101)):
        thread.at(first).emit(Ros2.RCLCPP_PUBLISH, **fields)
        thread.at(first + 10).emit(Ros2.RCL_PUBLISH, publisher_handle=app.publisher.handle, **fields)
        thread.at(first + 20).emit(Ros2.RMW_PUBLISH, rmw_publisher_handle=app.publisher.rmw, timestamp=1, **fields)
    sent = app.recording.model().publications
    assert sent.select("rclcpp_ns", "rcl_ns", "time_ns").rows() == [(100, 110, 120), (101, 111, 121)]


def test_carets_stamps_link_messages_without_events_of_the_middleware():
    """As in CARET's recordings of ROS 2 Galactic: a message's address is bound to its stamp after it was written."""
    app, message = App(), 0x77
    for first, stamp in ((100, 5_000), (200, 6_000)):
        app.thread.at(first).emit(Ros2.RCLCPP_PUBLISH, message=message)
        app.thread.emit(Ros2.RCL_PUBLISH, publisher_handle=app.publisher.handle, message=message)
        app.thread.emit(Caret.BIND, addr=message, source_stamp=stamp)
    app.thread.at(300).emit(Caret.BIND, addr=message, source_stamp=7_000)  # of the middleware itself
    callback = app.subscription.callback
    app.thread.emit(Caret.DISPATCH, message=message, callback=callback, source_stamp=6_000, message_timestamp=0)
    with app.thread.at(310).running(app.subscription):
        app.thread.at(320)
    for without in ((), ("message_timestamp",)):  # which its first recordings lack
        model = app.recording.model(without=without)
        assert model.publications["source_ns"].to_list() == [5_000, 6_000]
        assert model.takes["source_ns"].to_list() == [6_000]
        assert not {each.event for each in model.missing_events} & {Ros2.RMW_PUBLISH, Ros2.RMW_TAKE}


@pytest.mark.parametrize("copied", [True, False], ids=["to another address", "without an address"])
def test_carets_stamps_of_fast_dds(copied):
    """CARET for ROS 2 Galactic binds the message's copy, that for Humble no address at all."""
    app, message, copy = App(), 0x77, 0x990 if copied else 0
    for first, stamp in ((100, 5_000), (200, 6_000)):
        app.thread.at(first).emit(Ros2.RCL_PUBLISH, publisher_handle=app.publisher.handle, message=message)
        if copied:
            app.thread.emit(Caret.BIND_ADDRESS, addr_from=message, addr_to=copy)
        app.thread.emit(Caret.BIND, addr=copy, source_stamp=stamp)
    app.thread.at(300).emit(Caret.BIND, addr=copy, source_stamp=7_000)  # of the middleware itself
    model = app.recording.model()
    assert model.publications["source_ns"].to_list() == [5_000, 6_000]
    assert not {each.event for each in model.missing_events} & {Ros2.RMW_PUBLISH, Caret.BIND}


def test_carets_stamps_of_unknown_addresses_are_reported():
    app = App()
    app.thread.at(100).emit(Ros2.RCL_PUBLISH, publisher_handle=app.publisher.handle, message=0x77)
    app.thread.emit(Caret.BIND, addr=0x990, source_stamp=5_000)
    model = app.recording.model()
    assert model.publications["source_ns"].to_list() == [None]
    assert [each.effect for each in model.missing_events if each.event == Caret.BIND] == [
        "none has a message's address; latencies, late and lost messages are not known"
    ]


def test_empty_take_is_only_counted():
    app = App()
    app.thread.at(100).take(app.subscription, None)
    app.thread.at(200).take(app.subscription, Message(150))
    model = app.recording.model()
    assert model.takes.select("time_ns", "rcl_ns", "rclcpp_ns", "source_ns").rows() == [(200, 201, 202, 150)]
    assert model.unpaired == {"takes of nothing": 1}


def test_nested_callbacks():
    """A callback that spins: A [ B [ C ] B' ] with B twice in a row."""
    app = App()
    with app.thread.at(100).running(app.timer):
        with app.thread.at(110).running(app.subscription), app.thread.at(120).running(app.service):
            app.thread.at(130)
        with app.thread.at(140).running(app.subscription):
            app.thread.at(150)
        app.thread.at(160)
    assert app.runs() == [(100, 160, None), (110, 131, 0), (120, 130, 1), (140, 150, 0)]


def test_recursive_callback():
    app = App()
    with app.thread.at(100).running(app.timer), app.thread.at(110).running(app.timer):
        app.thread.at(120)
    assert app.runs() == [(100, 121, None), (110, 120, 0)]


def test_callback_without_end():
    app = App()
    start(app, 100, app.timer)
    start(app, 110, app.subscription)
    model = app.recording.model()
    assert model.callback_runs.select("start_ns", "end_ns", "parent").rows() == [(100, None, None), (110, None, 0)]
    assert model.unpaired == {"callback starts without an end": 2}


def test_end_without_start():
    app = App()
    end(app, 50, app.timer)
    with app.thread.at(100).running(app.subscription):
        app.thread.at(120)
    model = app.recording.model()
    assert model.callback_runs.select("start_ns", "end_ns").rows() == [(100, 120)]
    assert model.unpaired == {"callback ends without a start": 1}


def test_lost_callback_end():
    """If events were lost, a callback that starts again has ended before, and does not nest."""
    app = App()
    start(app, 100, app.timer)
    with app.thread.at(200).running(app.timer):
        app.thread.at(210)
    assert app.runs(gaps=[GAP]) == [(100, None, None), (200, 210, None)]
    assert app.runs() == [(100, None, None), (200, 210, 0)]


def test_lost_callback_start():
    app = App()
    start(app, 100, app.timer)
    end(app, 150, app.subscription)
    end(app, 160, app.timer)
    model = app.recording.model(gaps=[GAP])
    assert model.callback_runs.select("start_ns", "end_ns").rows() == [(100, 160)]
    assert model.unpaired["callback ends without a start"] == 1


def test_runs_that_may_be_merged_by_a_loss_are_counted():
    """An end and the next start were lost: the rest looks like one long run."""
    app = App()
    start(app, 100, app.timer)
    end(app, 500, app.timer)
    with app.thread.at(600).running(app.timer):
        app.thread.at(700)
    model = app.recording.model(gaps=[Gap(200, 300, 2, 0), Gap(550, 590, 1, 0), Gap(250, 260, 1, 0)])
    assert model.callback_runs.select("start_ns", "end_ns").rows() == [(100, 500), (600, 700)]
    assert model.unpaired == {"callback runs during which events were lost": 1}


def test_a_lost_end_and_the_next_start_on_another_thread():
    app = App()
    start(app, 100, app.timer)
    with app.process.thread(2).at(120).running(app.timer) as other:
        other.at(130)
    assert app.runs(gaps=[GAP]) == [(100, None, None), (120, 130, None)]


runs_within: st.SearchStrategy[Any] = st.recursive(
    st.just([]),
    lambda inner: st.lists(st.tuples(st.integers(0, 2), inner), max_size=3),
    max_leaves=12,
)


@settings(deadline=None, max_examples=50)
@given(st.lists(runs_within, min_size=1, max_size=3))
def test_any_nesting_on_any_threads(threads):
    """Trees of callbacks, including recursive ones, are rebuilt."""
    app = App()
    callbacks = (app.timer, app.subscription, app.service)
    expected: list[list[int | None]] = []

    def play(thread, tree, parent):
        for which, within in tree:
            with thread.spend(1).running(callbacks[which]):
                own: list[int | None] = [thread.now - 1, None, parent]
                expected.append(own)
                play(thread, within, own[0])
                own[1] = thread.now

    for number, tree in enumerate(threads):
        play(app.process.thread(number + 5).at(1000 + 1000 * number), tree, None)
    runs = app.recording.model().callback_runs
    starts = runs["start_ns"].to_list()
    parents = [None if parent is None else starts[parent] for parent in runs["parent"]]
    assert list(zip(starts, runs["end_ns"], parents, strict=True)) == [tuple(own) for own in expected]


def test_waits_end_when_the_thread_looks_for_what_is_ready():
    app = App()
    app.thread.at(100).wait(200, timeout_ns=50)
    app.process.thread(2).at(110).wait(150)
    waits = app.recording.model().waits
    assert waits.select("begin_ns", "end_ns", "timeout_ns").rows() == [(100, 200, 50), (110, 150, -1)]


def test_wait_with_lost_end_does_not_use_the_next_one():
    app = App()
    app.thread.at(100).emit(Ros2.EXECUTOR_WAIT_FOR_WORK, timeout=-1)
    app.thread.at(300).wait(400)
    waits = app.recording.model(gaps=[GAP]).waits
    assert waits.select("begin_ns", "end_ns").rows() == [(100, None), (300, 400)]


def test_execution_ends_with_its_callback_or_failed_take():
    app = App()
    app.thread.at(100).execute(app.subscription)
    app.thread.at(110).take(app.subscription, None)
    app.thread.at(200).emit(Ros2.EXECUTOR_GET_NEXT_READY)
    app.thread.at(210).execute(app.timer)
    with app.thread.at(220).running(app.timer):
        app.thread.at(250)
    app.thread.at(300).wait(400)
    executions = app.recording.model().executions
    assert executions.select("begin_ns", "end_ns", "subscription", "timer").rows() == [
        (100, 110, 0, None),
        (210, 250, None, 0),
    ]


def test_threads_of_one_callback_share_an_executor():
    app = App()
    threads = [app.process.thread(tid) for tid in (11, 12, 13, 14)]
    ran = ((0, app.timer), (1, app.timer), (1, app.service), (2, app.service), (3, app.subscription))
    for number, (which, entity) in enumerate(ran):
        with threads[which].at(1000 + 10 * number).running(entity):
            pass
    app.process.thread(15).at(3000).wait(3100)
    app.thread.at(4000).publish(app.publisher)
    model = app.recording.model()
    executor = dict(model.threads.select("tid", "executor").iter_rows())
    assert executor[11] == executor[12] == executor[13]
    assert len({executor[tid] for tid in (11, 14, 15)}) == 3
    assert executor[1] is None
    assert sorted(model.executors["threads"].to_list()) == [1, 1, 3]


def test_processes_share_no_executor():
    recording = Recording()
    for pid in (1, 2):
        process = recording.process(pid)
        timer = process.node("/node").timer(100)
        with process.thread().at(1000 * pid).running(timer):
            pass
    assert len(recording.model().executors) == 2


def test_transitions_of_a_state_machine():
    app = App()
    machine = {"state_machine": 0x99}
    app.thread.at(50).emit(Ros2.STATE_MACHINE_INIT, node_handle=app.node.handle, **machine)
    app.thread.at(100).emit(Ros2.LIFECYCLE_TRANSITION, start_label="inactive", goal_label="active", **machine)
    app.thread.at(200).emit(Ros2.LIFECYCLE_TRANSITION, start_label="a", goal_label="b", state_machine=0x77)
    model = app.recording.model()
    assert model.transitions.select("from_state", "to_state", "state_machine").rows() == [
        ("inactive", "active", 0),
        ("a", "b", 1),
    ]
    assert model.state_machines.select("node", "known").rows() == [(0, True), (None, False)]
    assert model.unknown == {"state_machines": 1}


def test_steps_of_a_service_call():
    """With the events of newer tracetools; an empty take is no step."""
    recording = Recording()
    server, caller = recording.process(1), recording.process(2)
    service, client = server.node("/server").service("/add"), caller.node("/caller").client("/add")
    gid = bytes(range(16))
    there, here = server.thread(), caller.thread()
    here.at(100).emit(Ros2.RMW_SEND_REQUEST, rmw_client_handle=client.rmw, request=1, sequence_number=7)
    for at, taken in ((105, 0), (110, 1)):
        there.at(at).emit(
            Ros2.RMW_TAKE_REQUEST,
            rmw_service_handle=service.rmw,
            request=2,
            client_gid=gid,
            sequence_number=7,
            taken=taken,
        )
    there.at(120).emit(
        Ros2.RMW_SEND_RESPONSE,
        rmw_service_handle=service.rmw,
        response=3,
        client_gid=gid,
        sequence_number=7,
        timestamp=9,
    )
    for at, taken in ((125, 0), (130, 1)):
        here.at(at).emit(
            Ros2.RMW_TAKE_RESPONSE,
            rmw_client_handle=client.rmw,
            response=4,
            sequence_number=7,
            source_timestamp=9,
            taken=taken,
        )
    requests = recording.model().requests
    assert requests.select("time_ns", "step", "client", "service").rows() == [
        (100, "send_request", 0, None),
        (110, "take_request", None, 0),
        (120, "send_response", None, 0),
        (130, "take_response", 0, None),
    ]
    assert requests["sequence"].to_list() == [7] * 4
    assert requests["client_gid"].to_list() == [None, gid.hex(), gid.hex(), None]
    assert requests["id"].to_list() == [0, 1, 2, 3]


def test_annotations_name_what_they_link():
    app = App()
    app.node.link(Ros2.LINK_PERIODIC_ASYNC, [app.subscription], [app.publisher])
    app.node.link(Ros2.LINK_PARTIAL_SYNC, [app.subscription, app.process.entity(None)], [])
    model = app.recording.model()
    assert model.unpaired == {"handles in link annotations that nothing is known of": 1}
    found = model.link_annotations
    assert found.select("rule", "subscriptions", "publishers").rows() == [
        ("periodic_async", [0], [0]),
        ("partial_sync", [0], []),
    ]


def test_python_nodes_have_no_callbacks():
    """Rclpy reports rcl and rmw only."""
    recording = Recording()
    process = recording.process()
    node, thread = process.node("/listener"), process.thread()
    subscription = node.subscription("/chatter")
    thread.at(100).take(subscription, Message(90), layers=(Ros2.RCL_TAKE,))
    model = recording.model(events=set(Ros2) - {Ros2.CALLBACK_REGISTER, Ros2.RCLCPP_SUBSCRIPTION_INIT})
    assert model.takes.select("time_ns", "rcl_ns", "rclcpp_ns", "subscription").rows() == [(100, 101, None, 0)]
    assert (len(model.callbacks), len(model.callback_runs), len(model.executors)) == (0, 0, 0)


def test_an_empty_recording():
    model = Recording().model()
    assert {name: len(frame) for name, frame in model.frames().items() if len(frame)} == {"hosts": 1}
    assert (model.unknown, model.unpaired, model.topics()) == ({}, {}, [])


def two_hosts():
    recording = Recording()
    for host in ("arm", "base"):
        process = recording.process(5, host=host)
        node, thread = process.node(f"/{host}"), process.thread()
        timer, subscription = node.timer(100), node.subscription("/in")
        thread.at(1000).wait(1100)
        thread.execute(timer)
        with thread.running(timer):
            thread.publish(node.publisher("/out"))
        with thread.receiving(subscription, Message(1)):
            pass
    return recording.model()


def test_clock_offset_shifts_only_times_of_its_host():
    model = two_hosts()
    moved = shift_clocks(model, {"base": 5_000})
    still = {"source_ns", "timeout_ns", "period_ns"}
    of_process = dict(model.processes.select("id", "host").iter_rows())
    of_thread = {thread: of_process[process] for thread, process in model.threads.select("id", "process").iter_rows()}
    seen = 0
    for name, frame in model.frames().items():
        owner = "thread" if "thread" in frame.columns else "process"
        host = of_thread if owner == "thread" else of_process
        for column in frame.columns:
            expected = frame[column]
            if column.endswith("_ns") and column not in still:
                offset = pl.Series([5_000 * host[each] for each in frame[owner]], dtype=pl.Int64)
                expected = frame[column] + offset
                seen += len(frame)
            assert moved.frames()[name][column].to_list() == expected.to_list(), (name, column)
    assert seen == 42


def test_without_offset_no_clock_is_shifted():
    model = two_hosts()
    for name, frame in shift_clocks(model, {}).frames().items():
        assert frame.equals(model.frames()[name])


def test_clock_offset_of_an_unknown_host_is_refused():
    with pytest.raises(ConfigurationError, match=r"no host 'bse' in the trace\n.*it has arm, base"):
        shift_clocks(two_hosts(), {"bse": 1})
