"""Real runs of a small topology over Cyclone DDS, in one and many processes, and failures."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time

import psutil
import pytest

from pytest_ldos.instruments.topology.instrument import INSTRUMENT
from pytest_ldos.instruments.topology.rounds import Code, analyse
from pytest_ldos.instruments.topology.run import TopologySpec, run_topology
from pytest_ldos.robot.topology.conversation import RECORD_BYTES, Processes
from pytest_ldos.robot.topology.model import TopicQos
from tests.builders.topologies import TWO, text_of, topology

MODULE = "pytest_ldos.robot.topology.embedded_process"


def spec(**changes) -> TopologySpec:
    return TopologySpec(**{"file": "pick_cell", "seconds": 1.0, "rounds": 2, "sampling": 0.25, **changes})


def processes_of_topologies() -> list[psutil.Process]:
    """Topology processes of this test process."""
    found = []
    for each in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if MODULE in each.cmdline():
                found.append(each)
    return found


def analysed(recorded, asked):
    return analyse(topology(), [recorded], asked.limits, case="two", rounds=asked.rounds, cores=2)


@pytest.mark.parametrize(
    ("processes", "count"), [pytest.param(Processes.ONE, 1, marks=pytest.mark.acceptance), (Processes.NODE, 2)]
)
@pytest.mark.measures_time
def test_every_message_is_received(processes, count):
    asked = spec(processes=processes)
    recorded = run_topology(topology(), asked)
    assert recorded.failure == ""
    assert len(recorded.resources) == count
    found = analysed(recorded, asked)
    messages, replies = found.edges
    assert 30 <= recorded.sent[0] <= 100
    assert messages.received + messages.lost == recorded.sent[0]
    assert replies.received + replies.lost == recorded.sent[2]
    assert 5 <= recorded.sent[2] <= 20
    assert all(10 < edge.mean_us < 1e6 for edge in found.edges)
    assert [each.failure for each in found.rounds] == ["", ""]
    assert len(found.usage) == 5
    assert found.usage[-1].cpu_percent > 0
    assert found.usage[-1].rss_kb > 20_000
    assert found.usage[-1].in_use_kb > 0
    assert processes_of_topologies() == []


@pytest.mark.acceptance
@pytest.mark.measures_time
def test_last_sample_is_at_the_end():
    asked = spec(seconds=0.7, sampling=0.5, rounds=3)
    recorded = run_topology(topology(), asked)
    (looks,) = recorded.resources.values()
    assert [round((each.mono_ns - recorded.start_ns) / 1e8) for each in looks] == [0, 5, 7]
    assert looks[-1].mono_ns >= recorded.end_ns
    assert all(each.values["cpu"] > 0 for each in analysed(recorded, asked).rounds)


@pytest.mark.acceptance
def test_killed_node_is_a_failure():
    asked = spec(processes=Processes.NODE, seconds=180.0, rounds=900)
    killer = threading.Thread(target=lambda: process_when_sending(0).kill())
    killer.start()
    began_s = time.monotonic()
    recorded = run_topology(topology(), asked)
    killer.join()
    assert time.monotonic() - began_s < asked.seconds
    assert recorded.failure.startswith("talker was killed by SIGKILL ")
    assert recorded.failure.endswith(" s after messages began")
    rounds = analysed(recorded, asked).rounds
    assert rounds[0].failure == ""
    assert rounds[-1].failure == recorded.failure
    assert processes_of_topologies() == []


DIFFERENT = {
    "latest": {"msg_type": "stamped10b", "qos_reliability": "best_effort", "qos_depth": 1},
    "all": {"msg_type": "stamped10b", "qos_reliability": "reliable", "qos_depth": 1000},
}
"""Two topics: on one, an untaken message is replaced by the next one; on the other, it is queued."""


@pytest.mark.acceptance
@pytest.mark.measures_time
def test_stopped_node_loses_messages_or_gets_them_too_late():
    taken = [{"topic_name": name, **end} for name, end in DIFFERENT.items()]
    sent = [{**end, "period_ms": 10} for end in taken]
    nodes = [{"node_name": "talker", "publishers": sent}, {"node_name": "listener", "subscribers": taken}]
    declared, asked = topology({"nodes": nodes}), spec(processes=Processes.NODE, seconds=3.0)
    stopper = threading.Thread(target=stand_still, args=(1, 0.5))
    stopper.start()
    recorded = run_topology(declared, asked)
    stopper.join()
    assert recorded.failure == ""
    found = analyse(declared, [recorded], asked.limits, case="two", rounds=1, cores=2)
    latest, every = found.edges
    assert latest.lost >= 20
    assert every.lost == 0
    assert every.too_late >= 20
    assert {Code.TOO_LATE, Code.LOST} <= {each.code for each in found.events}
    assert found.rounds[0].values["lost"] == pytest.approx(found.totals.lost_percent)


def stand_still(number: int, seconds: float) -> None:
    process = process_when_sending(number)
    process.suspend()
    time.sleep(seconds)
    process.resume()


def process_when_sending(number: int) -> psutil.Process:
    """Waits for messages and returns a node's process."""
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        for each in processes_of_topologies():
            with contextlib.suppress(psutil.NoSuchProcess, IndexError):
                if f'/{number}.json"' in each.cmdline()[-1] and is_writing():
                    return each
        time.sleep(0.05)
    raise TimeoutError("no messages flowed")


def is_writing() -> bool:
    """True if the listener has written half a second of samples at 120 messages per second."""
    for each in processes_of_topologies():
        with contextlib.suppress(psutil.NoSuchProcess):
            if any(
                file.path.endswith("/1.samples") and file.position >= 60 * RECORD_BYTES for file in each.open_files()
            ):
                return True
    return False


@pytest.mark.acceptance
@pytest.mark.measures_time
def test_undiscovered_peers_are_a_failure():
    declared = topology()
    listener = declared.nodes[1]
    (asked_for,) = listener.subscriptions
    durable = dataclasses.replace(asked_for, qos=TopicQos(transient_local=True))
    nodes = (declared.nodes[0], dataclasses.replace(listener, subscriptions=(durable,)))
    separate = dataclasses.replace(declared, nodes=nodes)
    recorded = run_topology(separate, spec(), match_limit_s=4.0)
    assert recorded.failure.startswith("these did not meet their peers: ")
    assert "/listener subscribing /counts" in recorded.failure
    assert all(each.failure for each in analysed(recorded, spec()).rounds)
    assert processes_of_topologies() == []


def test_failed_process_is_reported_with_its_output(monkeypatch):
    nowhere = {"PYTHONPATH": "/nonexistent", "PYTHONHOME": "/nonexistent"}
    monkeypatch.setattr("pytest_ldos.instruments.cost_layers.bound_to_loopback", lambda: nowhere)
    recorded = run_topology(topology(), spec())
    assert recorded.failure.startswith("two ended with exit code 1 before messages began: ")
    assert "encodings" in recorded.failure


def test_the_instrument_gives_rounds_tables_and_files(tmp_path):
    (tmp_path / "two.json").write_text(text_of(TWO))
    asked = spec(file=str(tmp_path / "two.json"), log=str(tmp_path / "log"), starts=2)
    seen = []

    class Watcher:
        def expect(self, steps):
            seen.append(steps)

        def doing(self, what):
            seen.append(what)

        def step(self, count=1): ...

        def note(self, text): ...

    study = INSTRUMENT.measure(asked, Watcher())
    assert seen == [2, "start 1 of 2: 2 nodes for 1 s", "start 2 of 2: 2 nodes for 1 s"]
    assert (study.name, study.layer) == ("topology-two", "embedded")
    assert [each.block for each in study.rounds] == [0, 0, 1, 1]
    assert {name for each in study.rounds for name in each.values} == {each.name for each in study.quantities}
    assert [table.name for table in study.tables] == [
        "edges",
        "latency_total",
        "usage",
        "latency_all",
        "resources",
        "events",
    ]
    assert sorted(each.name for each in (tmp_path / "log").iterdir()) == [
        "events.txt",
        "latency_all.txt",
        "latency_total.txt",
        "resources.txt",
    ]
