"""Nodes of real rclpy that run before they are recorded."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_ldos.base.errors import RecordingFailed, Unavailable
from pytest_ldos.record import attach, lttng
from pytest_ldos.record.attach import AttachedRecorder, copy_names, keep_names, list_sessions, registered_processes
from pytest_ldos.record.lttng import PrivateDaemon
from pytest_ldos.robot.stack.ros2.running import RunningTree
from pytest_ldos.robot.stack.ros2.state import LaunchFailed, parse_event
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.build import build_execution
from tests.builders.needs import needs_lttng
from tests.builders.stressors import wait_until

pytestmark = needs_lttng

ENDLESS = 1_000_000


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A session daemon in the place of this machine's, with what its processes need."""
    daemon = PrivateDaemon(tmp_path)
    daemon.start()
    run = lttng._run
    monkeypatch.setattr(lttng, "_run", lambda arguments, *_: run(arguments, daemon.join_prefix, daemon.environment))
    init = attach._MachineDaemon.__init__

    def joined(self, folder):
        init(self, folder)
        self.join_prefix = daemon.join_prefix

    monkeypatch.setattr(attach._MachineDaemon, "__init__", joined)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name, value in daemon.environment.items():
        monkeypatch.setenv(name, value)
    yield SimpleNamespace(prefix=daemon.join_prefix, environment=daemon.environment)
    daemon.stop()


@pytest.fixture
def start(machine, open_graph, tmp_path, monkeypatch):
    """Starts a talker and a listener."""
    with open_graph(tmp_path / "nodes", machine) as graph:
        monkeypatch.setenv("ROS_DOMAIN_ID", graph.environment["ROS_DOMAIN_ID"])

        def started():
            graph.start("listener", ENDLESS)
            graph.start("talker", ENDLESS, 0.01)
            wait_until(lambda: "talk" in graph.log("talker") and len(seen()) == 2)
            return graph

        yield started


def seen():
    try:
        return registered_processes()
    except Unavailable:
        return {}


def recorded(folder, graph):
    """Records some messages; returns the recorder and the model of its trace."""
    recorder = AttachedRecorder(folder, folder, processes=registered_processes())
    folder.mkdir()
    try:
        recorder.start()
        before = len(graph.log("listener").splitlines())
        wait_until(lambda: len(graph.log("listener").splitlines()) > before + 20)
        report = recorder.pause()
    finally:
        recorder.stop()
    assert (report.discarded_events, report.fault) == (0, "")
    return recorder, build_execution(read_trace(folder))


def names_of(model):
    return set(model.nodes["name"].drop_nulls())


def test_nodes_have_names_if_they_were_kept(start, tmp_path):
    """Also when they are recorded often: a copy does not use up the names."""
    assert keep_names()
    assert not keep_names(), "they are kept already"
    graph = start()
    for number in range(5):
        assert copy_names(tmp_path / f"copy-{number}")
    recorder, model = recorded(tmp_path / "trace", graph)
    assert recorder.has_names
    assert names_of(model) == {"/talker", "/ears/listener"}
    assert "/chatter" in set(model.publishers["topic"])
    assert len(model.publications) >= 20
    assert [*list_sessions()] == [attach.KEPT], "sessions of recordings have ended"


def test_nodes_without_names_are_recorded_and_counted_as_unknown(start, tmp_path):
    recorder, model = recorded(tmp_path / "trace", start())
    assert not recorder.has_names
    assert names_of(model) == set()
    assert model.unknown


def test_only_the_chosen_processes_are_recorded(start, tmp_path):
    graph = start()
    talker = next(each.pid for each in graph.group.children if each.name == "talker")
    recorder = AttachedRecorder(tmp_path / "trace", tmp_path, processes={talker: "talker"})
    try:
        recorder.start()
        before = len(graph.log("listener").splitlines())
        wait_until(lambda: len(graph.log("listener").splitlines()) > before + 20)
        recorder.pause()
    finally:
        recorder.stop()
    trace = read_trace(tmp_path / "trace")
    assert {pid for table in trace.events.values() for pid in table.columns["vpid"]} == {talker}


def test_nodes_of_another_domain_are_counted(start, monkeypatch):
    start()
    monkeypatch.setenv("ROS_DOMAIN_ID", "231")
    with pytest.raises(Unavailable, match="runs in domain 231; 2 in others"):
        registered_processes()


def test_without_a_session_daemon(machine, monkeypatch):
    def refused(*_: object):
        raise RecordingFailed("No session daemon is available")

    monkeypatch.setattr(attach, "run_lttng", refused)
    with pytest.raises(Unavailable, match="no LTTng session daemon answers: No session daemon"):
        registered_processes()


def test_session_that_is_destroyed_while_it_records(start, tmp_path):
    start()
    recorder = AttachedRecorder(tmp_path / "trace", tmp_path, processes=registered_processes())
    recorder.start()
    lttng.run_lttng("destroy", "--all")
    with pytest.raises(RecordingFailed, match=r"`lttng stop ldos-.* failed"):
        recorder.pause()
    recorder.stop()


def test_process_that_ends_is_named(start):
    graph = start()
    tree = RunningTree(registered_processes())
    events = tree.events
    began = {parse_event(next(events)).pid for _ in range(2)}
    assert began == set(tree.pids()) == {each.pid for each in graph.group.children}
    talker = next(each for each in graph.group.children if each.name == "talker")
    talker.process.kill()
    talker.process.wait()
    ended = parse_event(next(events))
    assert isinstance(ended, LaunchFailed)
    assert f"(pid {talker.pid}) ended while it was measured" in ended.reason
    tree.leave()
    assert next(events, None) is None
