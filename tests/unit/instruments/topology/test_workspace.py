"""The workspace's runner matches the Python one, by its sources."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_ldos.robot.dds.endpoint import fields_of
from pytest_ldos.robot.topology import embedded_process
from pytest_ldos.robot.topology.conversation import COLUMNS, RECORD_BYTES, encode_plan
from pytest_ldos.robot.topology.embedded_process import MESSAGE, SERVICE, own_resources
from tests.builders.topologies import topology

SOURCES = Path(__file__).parents[4] / "ros_ws/src"
RUNNER = SOURCES / "ldos_topology"


def source(name: str) -> str:
    return (RUNNER / name).read_text("utf-8")


def keys_in(value: object) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {key for each in value.values() for key in keys_in(each)}
    if isinstance(value, list):
        return {key for each in value for key in keys_in(each)}
    return set()


def test_a_plan_has_the_keys_that_the_runner_reads():
    declared = topology()
    plan = encode_plan(declared, declared.nodes, samples="s", sampling_ns=1, intra_process=False)
    assert set(re.findall(r'\.at\("(\w+)"\)', source("src/plan.cpp"))) == keys_in(plan)


def test_both_report_the_same_events_and_keys():
    ours = Path(embedded_process.__file__).read_text("utf-8")
    events = set(re.findall(r'\{"event", "(\w+)"\}', source("src/run.cpp")))
    assert events == set(re.findall(r'event(?:=|": )"(\w+)"', ours))
    resources = set(re.findall(r'\{"(\w+)", used\.\w+\}', source("src/run.cpp")))
    assert resources == set(own_resources())
    commands = set(re.findall(r'\.at\("(\w+)"\)', source("src/run.cpp")))
    assert commands == set(re.findall(r'(?:command|\))\["(\w+)"\]', ours)) == {"start_ns", "end_ns", "drain"}


def test_samples_have_the_same_format():
    struct = re.search(r"struct Sample\n\{(.*?)\};", source("include/ldos_topology/samples.hpp"), re.DOTALL)
    assert struct is not None
    fields = re.findall(r"std::int64_t (\w+);", struct[1])
    assert fields == ["receiver", "sender", "number", "sent_ns", "received_ns"]
    assert (len(fields), 8 * len(fields)) == (COLUMNS, RECORD_BYTES)


def test_messages_have_the_same_fields():
    def declared(name: str) -> list[str]:
        text = (SOURCES / "ldos_topology_msgs" / name).read_text("utf-8")
        return [line.split()[1] for line in text.splitlines() if line and not line.startswith(("#", "---"))]

    assert declared("msg/Stamped.msg") == [name for name, _ in fields_of(MESSAGE)]
    header = ["client_guid", "sequence_number"]
    request, reply = ([name for name, _ in fields_of(f"{SERVICE}_{part}")] for part in ("Request", "Response"))
    assert request[:2] == reply[:2] == header
    assert declared("srv/Stamped.srv") == [*request[2:], *reply[2:]]
