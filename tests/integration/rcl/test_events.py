"""Events of real rcl and rmw: their fields, the model of the nodes, and their messages."""

from __future__ import annotations

import json
import tarfile

import psutil
import pytest

from pytest_ldos.record import lttng
from pytest_ldos.record.lttng import LttngRecorder
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.build import build_execution
from pytest_ldos.trace.flow.build import build_flow
from tests.builders.needs import needs_lttng
from tests.builders.stressors import wait_until
from tests.integration.rcl.conftest import NODES
from tests.oracles.truth import found_links, logged_links

pytestmark = needs_lttng

GOLDEN = NODES.parents[2] / "golden"
MESSAGES = 200

RECORDED = {
    "talker_listener_fastdds": (
        "rcl_init",
        "rcl_node_init",
        "rmw_publisher_init",
        "rcl_publisher_init",
        "rcl_publish",
        "rmw_publish",
        "rmw_subscription_init",
        "rcl_subscription_init",
        "rmw_take",
        "rcl_take",
        "rcl_timer_init",
    ),
    "service_action": ("rcl_service_init", "rcl_client_init"),
    "lifecycle": ("rcl_lifecycle_state_machine_init", "rcl_lifecycle_transition"),
}
"""Events of recordings of C++ nodes of the distribution's packages."""


@pytest.fixture(scope="module")
def recorded(open_graph, tmp_path_factory):
    """A talker, a listener, a server and a lifecycle node; the trace's folder."""
    folder = tmp_path_factory.mktemp("recorded")
    recorder = LttngRecorder(folder / "trace", folder)
    recorder.start()
    try:
        with open_graph(folder / "nodes", recorder) as graph:
            graph.start("server")
            graph.start("machine")
            ends = [graph.start("listener", MESSAGES), graph.start("talker", MESSAGES, 0.002)]
            for each in ends:
                assert each.process.wait(30) == 0, graph.log(each.name)
            graph.group.stop()
        report = recorder.pause()
    finally:
        recorder.stop()
    assert report.discarded_events == 0
    return folder / "trace"


@pytest.fixture(scope="module")
def trace(recorded):
    return read_trace(recorded)


@pytest.fixture(scope="module")
def model(trace):
    return build_execution(trace)


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    """Opens a recording of the distribution's packages."""
    folder = tmp_path_factory.mktemp("golden")
    opened = {}

    def read(name):
        if name not in opened:
            with tarfile.open(GOLDEN / f"{name}.tar.xz") as packed:
                packed.extractall(folder / name, filter="data")
            opened[name] = read_trace(folder / name)
        return opened[name]

    return read


@pytest.mark.parametrize(("recording", "event"), [(name, each) for name, some in RECORDED.items() for each in some])
def test_fields_are_those_of_recorded_traces(trace, golden, recording, event):
    ours, theirs = (each.events[f"ros2:{event}"] for each in (trace, golden(recording)))
    assert {name: ours[name].dtype for name in ours.columns} == {name: theirs[name].dtype for name in theirs.columns}


def test_nodes_have_their_names(model):
    assert set(model.nodes["name"]) == {"/talker", "/ears/listener", "/server", "/machine"}


@pytest.mark.parametrize(("table", "node"), [("publishers", "/talker"), ("subscriptions", "/ears/listener")])
def test_ends_of_a_topic_have_their_nodes(model, table, node):
    names = dict(model.nodes.select("id", "name").iter_rows())
    ends = getattr(model, table).filter(topic="/chatter")
    assert [names[each] for each in ends["node"]] == [node]


def test_services_of_actions_are_found(model):
    assert {"/switch", "/count/_action/send_goal", "/machine/get_state"} <= set(model.services["name"])


def test_each_reception_is_linked_to_its_publication(recorded, model):
    """As the nodes themselves logged it."""
    logs = [recorded.parent / "nodes" / f"{name}.log" for name in ("talker", "listener")]
    log = [json.loads(line) for each in logs for line in each.read_text("utf-8").splitlines()]
    logged = logged_links(log)
    assert len(logged.transport) == MESSAGES
    assert found_links(build_flow(model), log).transport == logged.transport


def test_lost_events_are_counted(open_graph, tmp_path, monkeypatch):
    """The buffers are smaller than what a talker says while nothing empties them."""
    monkeypatch.setattr(lttng, "SUBBUFFER_SIZE", "4k")
    monkeypatch.setattr(lttng, "SUBBUFFER_COUNT", 2)
    recorder = LttngRecorder(tmp_path / "trace", tmp_path)
    recorder.start()
    try:
        with open_graph(tmp_path / "nodes", recorder) as graph:
            graph.start("listener", -1)
            talker = graph.start("talker", 1_000, 0.0005)
            wait_until(lambda: "pub" in graph.log("talker"))
            (consumer,) = (each for each in psutil.Process().children(True) if each.name() == "lttng-consumerd")
            consumer.suspend()
            try:
                assert talker.process.wait(60) == 0, graph.log("talker")
            finally:
                consumer.resume()
            graph.group.stop()
        report = recorder.pause()
    finally:
        recorder.stop()
    assert report.discarded_events > 0
    assert read_trace(recorder.directory).stats.discarded_events == report.discarded_events


def test_nodes_that_began_before_the_recording_have_no_names(open_graph, tmp_path):
    """Their messages are in the trace; that their names are not is counted."""
    recorder = LttngRecorder(tmp_path / "trace", tmp_path)
    recorder.start()
    try:
        with open_graph(tmp_path / "nodes", recorder) as graph:
            recorder.pause()
            graph.start("listener", MESSAGES)
            graph.start("talker", MESSAGES, 0.02)
            wait_until(lambda: "pub" in graph.log("talker"))
            recorder.resume()
            for name in ("listener", "talker"):
                (child,) = [each for each in graph.group.children if each.name == name]
                assert child.process.wait(60) == 0, graph.log(name)
            graph.group.stop()
        recorder.pause()
    finally:
        recorder.stop()
    model = build_execution(read_trace(recorder.directory))
    assert not len(model.nodes)
    assert model.unknown
    assert len(model.publications)
