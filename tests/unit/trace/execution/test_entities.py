"""Owners of handles, by host, process and life."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ldos.base.errors import ConfigurationError, TraceUnreadable
from pytest_ldos.base.ros2 import Ros2
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.build import NEEDED_EVENTS, build_execution
from pytest_ldos.trace.execution.callbacks import demangle
from pytest_ldos.trace.execution.endpoints import Registry
from pytest_ldos.trace.execution.observed import Clock
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.graph import Names
from tests.builders.ros2 import Message, Recording

RCL_ONLY = (Ros2.RCL_PUBLISH,)


def topics_of(model) -> list[str | None]:
    """The topic of each publication, in time order."""
    joined = model.publications.join(model.publishers, left_on="publisher", right_on="id", maintain_order="left")
    return joined["topic"].to_list()


def test_reused_address_belongs_to_its_latest_owner():
    recording = Recording()
    process = recording.process()
    node, thread = process.node("/talker"), process.thread()
    for at, topic in ((100, "/first"), (200, "/second"), (300, "/third")):
        publisher = node.publisher(topic, address=0x5000, at=at)
        thread.at(at + 50).publish(publisher)
    model = recording.model()
    assert topics_of(model) == ["/first", "/second", "/third"]
    assert model.publishers["born_ns"].to_list() == [101, 201, 301]
    assert model.unknown == {}


def test_use_before_the_init_event_belongs_to_the_first_owner():
    recording = Recording()
    process = recording.process()
    publisher = process.node("/talker").publisher("/early", at=500)
    process.thread().at(100).publish(publisher)
    assert topics_of(recording.model()) == ["/early"]


def test_equal_addresses_of_other_processes_are_distinct():
    """All processes of the builder use the same addresses; both hosts have a process 7."""
    recording = Recording()
    for number, (host, pid) in enumerate((("arm", 7), ("arm", 8), ("base", 7))):
        process = recording.process(pid, host=host)
        publisher = process.node(f"/node_{number}").publisher(f"/topic_{number}")
        process.thread().at(1000 + 10 * number).publish(publisher)
    model = recording.model()
    assert model.publishers["rmw_handle"].n_unique() == 1
    assert topics_of(model) == ["/topic_0", "/topic_1", "/topic_2"]
    assert model.hosts["name"].to_list() == ["arm", "base"]
    assert model.processes.select("host", "pid").rows() == [(0, 7), (0, 8), (1, 7)]
    assert model.nodes["process"].to_list() == [0, 1, 2]


def test_hundreds_of_processes_with_many_threads():
    recording = Recording()
    for pid in range(1000, 1300):
        process = recording.process(pid, name=f"app{pid}")
        publisher = process.node(f"/node_{pid}").publisher(f"/topic_{pid}")
        for tid in range(pid * 10, pid * 10 + 4):
            process.thread(tid).at(10 * pid + tid).publish(publisher)
    model = recording.model()
    assert (len(model.processes), len(model.threads)) == (300, 300 * 5)
    threads = model.threads.join(model.processes, left_on="process", right_on="id")
    sent = model.publications.join(threads, left_on="thread", right_on="id").join(
        model.publishers, left_on="publisher", right_on="id", suffix="_of_publisher"
    )
    assert len(sent) == 1200
    assert (sent["topic"] == "/topic_" + sent["pid"].cast(str)).all()
    assert (sent["tid"] // 10 == sent["pid"]).all()
    assert (sent["name_right"] == "app" + sent["pid"].cast(str)).all()


def test_same_tid_in_two_processes():
    """Each container numbers its own processes."""
    recording = Recording()
    for pid in (20, 30):
        process = recording.process(pid)
        publisher = process.node(f"/in_{pid}").publisher(f"/from_{pid}")
        process.thread(5).at(100 + pid).publish(publisher)
    model = recording.model()
    assert topics_of(model) == ["/from_20", "/from_30"]
    sent = model.publications.join(model.threads, left_on="thread", right_on="id")
    assert sent["tid"].to_list() == [5, 5]
    assert sent["process"].to_list() == [0, 1]


def test_tids_beyond_the_kernels_limit_and_negative_ones():
    recording = Recording()
    process = recording.process(3)
    publisher = process.node("/talker").publisher("/t")
    for at, tid in ((100, 1 << 30), (200, -1), (300, 3)):
        process.thread(tid).at(at).publish(publisher)
    model = recording.model()
    sent = model.publications.join(model.threads, left_on="thread", right_on="id", maintain_order="left")
    assert sent["tid"].to_list() == [1 << 30, -1, 3]


def test_process_is_named_after_its_main_thread():
    recording = Recording()
    for tid, name in ((9, "worker"), (4, "main"), (9, "worker")):
        recording.emit(Ros2.RCL_TAKE, 10 + tid, pid=4, tid=tid, name=name, message=1)
    model = recording.model()
    assert model.processes["name"].to_list() == ["main"]
    assert dict(model.threads.select("tid", "name").iter_rows()) == {4: "main", 9: "worker"}


def late_start() -> Recording:
    """A talker and a listener that ran before tracing began."""
    recording = Recording(announcing=False)
    talker, listener = recording.process(1), recording.process(2)
    publisher, timer = talker.node("/talker").publisher("/chatter"), talker.node("/talker").timer(100)
    subscription = listener.node("/listener").subscription("/chatter")
    with talker.thread().at(1000).running(timer) as thread:
        message = thread.publish(publisher)
    with listener.thread().at(1100).receiving(subscription, message):
        pass
    return recording


def test_entities_older_than_the_trace_are_unknown_and_counted():
    model = late_start().model()
    assert model.unknown == {"publishers": 1, "subscriptions": 1, "callbacks": 2}
    for table in (model.publishers, model.subscriptions, model.callbacks):
        assert table["known"].to_list() == [False] * len(table)
        assert table["born_ns"].null_count() == len(table)
    names = Names(model)
    assert names.topic(0) == "unknown"
    assert names.reception(0) == "unknown → unknown"
    assert names.run(0) == f"unknown: callback {model.callbacks['handle'][0]:#x}"


def test_intra_process_endpoints_older_than_the_trace_are_unknown():
    recording = Recording(announcing=False)
    process = recording.process()
    node = process.node("/relay")
    publisher, subscription = node.publisher("/in"), node.subscription("/in", intra=True)
    thread = process.thread().at(100)
    message = thread.publish_intra(publisher, {subscription: 0})
    with thread.receiving(subscription, message):
        pass
    model = recording.model()
    assert model.unknown == {"publishers": 1, "subscriptions": 1, "callbacks": 1}
    assert model.publications["publisher"].to_list() == [0]
    assert model.takes["subscription"].to_list() == [0]
    assert model.enqueues["subscription"].to_list() == [0]


def test_node_older_than_the_trace():
    recording = Recording(announcing=False)
    process = recording.process()
    node = process.node("/talker")
    recording.announcing = True
    publisher = node.publisher("/chatter")
    process.thread().at(100).publish(publisher)
    model = recording.model()
    assert model.unknown == {"nodes": 1}
    assert topics_of(model) == ["/chatter"]
    assert Names(model).sender(0) == "unknown"


def test_rosout_is_identified_by_the_rmw_handle():
    """Its rcl handle is an address on the call stack that changes with each call."""
    recording = Recording()
    process = recording.process()
    publishers = [process.node(name).publisher("/rosout") for name in ("/one", "/two")]
    thread = process.thread()
    for number in range(6):
        thread.at(100 * (number + 1)).publish(publishers[number % 2], rcl_handle=0x7FFF0000 + number, layers=RCL_ONLY)
    model = recording.model()
    assert model.publications["publisher"].to_list() == [0, 1, 0, 1, 0, 1]
    assert model.publications["rcl_ns"].to_list() == [100, 200, 300, 400, 500, 600]
    assert model.publications["rclcpp_ns"].null_count() == 6
    assert model.unknown == {}


def test_middleware_discovery_is_neither_publication_nor_take():
    recording = Recording()
    process = recording.process()
    node, thread = process.node("/talker"), process.thread()
    thread.at(100).publish(process.entity(None), layers=())
    thread.at(200).take(process.entity(None), Message(5), layers=())
    thread.at(300).publish(node.publisher("/chatter"))
    model = recording.model()
    assert topics_of(model) == ["/chatter"]
    assert len(model.takes) == 0
    assert model.unpaired == {"publications of the middleware itself": 1, "takes of the middleware itself": 1}


def test_the_second_subscription_object_is_announced_after_its_callback():
    recording = Recording()
    process = recording.process()
    node = process.node("/relay")
    subscriptions = [node.subscription(topic, intra=True) for topic in ("/a", "/b", "/c")]
    thread = process.thread().at(1000)
    for subscription in subscriptions:
        for intra in (True, False):
            with thread.running(subscription, intra=intra):
                pass
    model = recording.model()
    runs = model.callback_runs.join(model.callbacks, left_on="callback", right_on="id", maintain_order="left")
    assert runs["subscription"].to_list() == [0, 0, 1, 1, 2, 2]
    assert runs["node"].to_list() == [0] * 6


def test_reused_addresses_of_subscription_objects():
    """Each life has its own objects, callbacks and buffer, at the same addresses."""
    recording = Recording()
    process = recording.process()
    node, thread = process.node("/relay"), process.thread()
    for at, topic in ((1000, "/first"), (2000, "/second")):
        subscription = node.subscription(topic, intra=True, address=0x7000, at=at)
        with thread.at(at + 500).running(subscription, intra=True):
            pass
        publisher = node.publisher(topic, at=at + 600)
        thread.take_intra(subscription, thread.at(at + 700).publish_intra(publisher, {subscription: 0}))
    model = recording.model()
    runs = model.callback_runs.join(model.callbacks, left_on="callback", right_on="id", maintain_order="left")
    assert runs["subscription"].to_list() == [0, 1]
    assert model.takes["subscription"].to_list() == [0, 1]
    assert model.publications["publisher"].to_list() == [0, 1]


def test_timer_linked_to_its_node_later():
    recording = Recording()
    process = recording.process()
    one, two = process.node("/one"), process.node("/two")
    one.timer(50, address=0x6000, at=1000, linked_at=1090)
    two.timer(70, address=0x6000, at=1100, linked_at=1500)
    recording.announcing = False
    unlinked = process.entity(0x6000)
    recording.emit(Ros2.TIMER_INIT, 2000, timer_handle=unlinked.handle, period=90)
    model = recording.model()
    assert model.timers.select("period_ns", "node").rows() == [(50, 0), (70, 1), (90, None)]


def test_executed_entity_has_the_kind_of_the_current_owner():
    recording = Recording()
    process = recording.process()
    node, thread = process.node("/node"), process.thread()
    timer = node.timer(50, address=0x6000, at=1000)
    thread.at(1100).execute(timer)
    subscription = node.subscription("/chatter", address=0x6000, at=2000)
    thread.at(2100).execute(subscription)
    assert recording.model().executions.select("timer", "subscription").rows() == [(0, None), (None, 0)]


def test_symbols_are_demangled():
    recording = Recording()
    node = recording.process().node("/node")
    node.subscription("/a", symbol="_ZN5relay8callbackEi")
    node.subscription("/b", symbol="_Znot a symbol")
    node.subscription("/c", symbol="Relay::on_message(int)")
    symbols = recording.model().callbacks["symbol"].to_list()
    assert symbols == ["relay::callback(int)", "_Znot a symbol", "Relay::on_message(int)"]


@pytest.mark.parametrize("symbol", ["", "_Z", "_ZN", "_Z" + "N1a" * 2000, "_ZÄ", "_Z1a\0b"])
def test_any_symbol_is_accepted(symbol):
    assert isinstance(demangle(symbol), str)


def test_actions_are_recognised_by_their_services():
    recording = Recording()
    node = recording.process().node("/arm")
    for name in ("send_goal", "get_result", "cancel_goal"):
        node.service(f"/move/_action/{name}")
        node.client(f"/grip/_action/{name}")
    node.service("/not_an_action/send_goal")
    model = recording.model()
    assert model.actions.select("node", "role", "name").rows() == [(0, "server", "/move"), (0, "client", "/grip")]


def test_a_recording_without_contexts_is_one_process_with_one_thread():
    recording = Recording()
    for pid in (1, 2):
        process = recording.process(pid)
        publisher = process.node(f"/node_{pid}", address=0x100 * pid).publisher(f"/t{pid}", address=0x9000 * pid)
        process.thread().at(100 * pid).publish(publisher)
    model = recording.model(without={"vpid", "vtid", "procname"})
    assert topics_of(model) == ["/t1", "/t2"]
    assert model.processes.select("pid", "name").rows() == [(0, None)]
    assert model.threads.select("tid", "name").rows() == [(0, None)]


def test_process_selection_needs_vpid():
    recording = Recording()
    recording.process(1).node("/node")
    with pytest.raises(TraceUnreadable, match="no context vpid"):
        recording.model(pids=[1], without={"vpid"})


def test_only_observed_processes_are_in_the_model():
    recording = Recording()
    for pid in (1, 2):
        process = recording.process(pid)
        process.thread().at(100).publish(process.node(f"/node_{pid}").publisher(f"/t{pid}"))
    model = recording.model(pids=[2])
    assert model.processes["pid"].to_list() == [2]
    assert model.threads["tid"].to_list() == [2]
    assert model.nodes["name"].to_list() == ["/node_2"]
    assert topics_of(model) == ["/t2"]


def test_processes_of_32_bits():
    recording = late_start()
    for row in recording.rows:
        assert all(value < 1 << 32 for value in row.fields.values() if isinstance(value, int))
    wide, narrow = recording.model(), recording.model(address_bits=32)
    for name, frame in wide.frames().items():
        assert frame.equals(narrow.frames()[name]), name


@pytest.mark.parametrize("missing", ["source_timestamp", "taken"])
def test_field_of_every_release_is_required(missing):
    with pytest.raises(TraceUnreadable, match=rf"rmw_take has no field '{missing}' .*Humble"):
        late_start().model(without={missing})


def test_two_releases_of_tracetools_in_one_trace():
    """Both write the same table: only some rows have the stamp."""
    recording = Recording()
    for pid in (1, 2):
        process = recording.process(pid)
        process.thread().at(100 * pid).publish(process.node(f"/node_{pid}").publisher(f"/t{pid}"))
    trace = recording.trace()
    table = trace.events[Ros2.RMW_PUBLISH]
    partial = dataclasses.replace(table.columns["timestamp"], valid=np.array([True, False]))
    table = dataclasses.replace(table, columns={**table.columns, "timestamp": partial})
    mixed = dataclasses.replace(trace, events={**trace.events, Ros2.RMW_PUBLISH: table})
    model = build_execution(mixed)
    assert topics_of(model) == ["/t1", "/t2"]
    assert model.publications["source_ns"].is_null().to_list() == [False, True]
    assert [(each.event, each.processes) for each in model.missing_events] == [("ros2:rmw_publish.timestamp", (1,))]
    assert build_execution(mixed, pids=[1]).missing_events == ()


@pytest.mark.parametrize(
    "events", [set(), {Ros2.CALLBACK_START, Ros2.CALLBACK_END}, {Ros2.RMW_PUBLISH}, {Ros2.RMW_TAKE}]
)
def test_model_is_built_from_any_subset_of_events(events):
    recording = late_start()
    model = recording.model(events=events)
    assert len(model.callback_runs) == (2 if Ros2.CALLBACK_START in events else 0)
    assert len(model.publications) == 0


@pytest.mark.parametrize("left_out", sorted(NEEDED_EVENTS))
def test_model_is_built_without_any_single_event(golden_pipeline, left_out):
    events = {name: table for name, table in golden_pipeline.events.items() if name != left_out}
    model = build_execution(dataclasses.replace(golden_pipeline, events=events))
    flow = build_flow(model)
    assert len(flow.transport) <= len(model.takes)


@pytest.fixture(scope="module")
def golden_pipeline(golden):
    return read_trace(golden("pipeline_single_links"))


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 50)), max_size=30),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(-5, 60)), max_size=30),
)
def test_life_at_a_time(inits, questions):
    """Equals a linear search: the last birth at or before the time, else the first."""
    inits = sorted(inits, key=lambda init: init[2])
    process, handle, born = (np.array([init[at] for init in inits], dtype=np.int64) for at in range(3))
    registry = Registry(process.astype(np.int32), handle.astype(np.uint64), born)
    expected = []
    for process_, handle_, moment in questions:
        lives = [row for row, init in enumerate(inits) if init[:2] == (process_, handle_)]
        begun = [row for row in lives if inits[row][2] <= moment]
        expected.append(begun[-1] if begun else lives[0] if lives else -1)
    asked = [np.array([question[at] for question in questions], dtype=np.int64) for at in range(3)]
    assert registry.find(asked[0], asked[1].astype(np.uint64), asked[2]).tolist() == expected


def test_an_address_with_very_many_lives():
    """A linear search would take too long."""
    lives = 300_000
    born, process = np.arange(lives, dtype=np.int64), np.zeros(lives, dtype=np.int32)
    handle = np.full(lives, 0x1000, dtype=np.uint64)
    assert (Registry(process, handle, born).find(process, handle, born) == np.arange(lives)).all()


def test_per_process_buffers_name_their_process():
    """With per-process buffers, the trace's environment holds the pid."""
    recording = Recording()
    for pid in (1, 2):
        process = recording.process(pid, host=f"host{pid}")
        process.thread().at(100).publish(process.node(f"/node_{pid}").publisher(f"/t{pid}"))
    trace = recording.trace(without={"vpid", "vtid"})
    infos = tuple(
        dataclasses.replace(
            info, environment={"hostname": "arm", "tracer_buffering_scheme": "pid", "vpid": 70 + number}
        )
        for number, info in enumerate(trace.traces)
    )
    model = build_execution(dataclasses.replace(trace, traces=infos), pids=[71])
    assert model.processes["pid"].to_list() == [71]
    assert topics_of(model) == ["/t2"]


def test_unset_clock_and_set_clock():
    """A host without a battery starts in 1970; the decades between need so many bits that none are left for threads."""
    recording = Recording(skew_ns={"arm": 1_795_238_711_000_000_000})
    for host in ("arm", "base"):
        process = recording.process(7, host=host)
        publisher = process.node(f"/{host}").publisher(f"/{host}_state")
        for tid in range(7, 20):
            process.thread(tid).at(1000 * tid).publish(publisher)
    model = recording.model()
    assert len(model.publications) == 26
    assert model.publications["rclcpp_ns"].null_count() == 0
    assert topics_of(model) == ["/base_state"] * 13 + ["/arm_state"] * 13


def test_keys_are_in_order_of_thread_then_time_in_all_eras():
    eras = [np.array([5, 9]), np.array([10**18, 10**18 + 7]), np.array([10**15])]
    clock = Clock(*eras)
    times = np.sort(np.concatenate(eras))
    keys = clock.keys(np.repeat([0, 1], len(times)), np.tile(times, 2))
    assert (np.diff(keys) > 0).all()
    assert clock.last_ns == 10**18 + 7


def test_too_many_threads_for_a_long_trace_are_refused():
    hourly = np.arange(0, 1 << 62, 1 << 42)
    clock = Clock(hourly)
    assert clock.keys(np.array([1]), hourly[-1:]) > 0
    with pytest.raises(ConfigurationError, match="too long for the number of its threads"):
        clock.keys(np.array([2]), hourly[-1:])
