"""Topology files: content and refusals."""

from __future__ import annotations

import copy
import os
import shutil
import subprocess
import time

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.text import one_line
from pytest_ldos.robot.topology.located_json import LONGEST_FILE
from pytest_ldos.robot.topology.model import decode_topology, our_topologies, read_topology
from tests.builders.topologies import MS, TWO, text_of, topology


def declared(**changes):
    """`TWO` with changes by address: ``{"0.publishers.0.period_ms": 5}``; ``None`` removes a key."""
    made = copy.deepcopy(TWO)
    for address, value in changes.items():
        place = made["nodes"]
        *path, last = [int(step) if step.isdigit() else step for step in address.split(".")]
        for step in path:
            place = place[step]
        if value is None:
            del place[last]
        else:
            place[last] = value
    return made


def refusal(text: str) -> str:
    with pytest.raises(ConfigurationError) as refused:
        decode_topology(text, "two.json")
    return str(refused.value)


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


def test_declared_topology_is_read():
    talker, listener = topology().nodes
    (publisher,), (subscription,), (client,) = talker.publishers, listener.subscriptions, listener.clients
    assert (publisher.topic, publisher.size_bytes, publisher.period_ns) == ("/counts", 8, 10 * MS)
    assert (publisher.qos.depth, publisher.qos.reliable, publisher.by_unique_ptr) == (10, True, True)
    assert (subscription.topic, subscription.by_unique_ptr) == ("/counts", False)
    assert (client.service, client.size_bytes, client.period_ns) == ("/sum", 10, 50 * MS)
    assert [publisher.id, subscription.id, client.id] == [0, 1, 2]


def test_all_features_of_the_format():
    text = """{"nodes": [
      {"node_name": "n", "node_namespace": "left", "executor_id": 3, "number": 2,
       "publishers": [{"topic_name": "t", "msg_type": "plug::stamped_vector", "msg_size": 77, "freq_hz": 64,
                       "qos_depth": 3, "qos_history": "keep_last", "qos_reliability": "best_effort",
                       "qos_durability": "transient_local", "qos_deadline": "default", "qos_lifespan": "default",
                       "qos_liveliness": "automatic", "qos_liveliness_lease_duration": "default",
                       "qos_avoid_ros_namespace_conventions": "false", "msg_pass_by": "shared_ptr"}],
       "subscribers": [{"topic_name": "t", "msg_type": "plug::stamped_vector", "qos_reliability": "best_effort"}]}]}"""
    first, second = decode_topology(text, "all.json").nodes
    assert [first.full_name, second.full_name] == ["left_1/n_1", "left_2/n_2"]
    (publisher,) = second.publishers
    assert (publisher.topic, publisher.size_bytes, publisher.period_ns) == ("/left_2/t", 77, 15_625_000)
    assert (publisher.qos.depth, publisher.qos.reliable, publisher.qos.transient_local) == (3, False, True)
    assert (second.executor, publisher.by_unique_ptr) == (3, False)


@pytest.mark.parametrize(
    ("msg_type", "size"),
    [("stamped10b", 10), ("stamped100kb", 102_400), ("stamped4mb", 4_194_304), ("stamped4_int32", 16),
     ("stamped12_float32", 48), ("stamped_int64", 8), ("irobot_interfaces_plugin::stamped250b", 250)],
)  # fmt: skip
def test_size_is_read_from_the_type_name(msg_type, size):
    made = declared(**{"0.publishers.0.msg_type": msg_type, "1.subscribers.0.msg_type": msg_type})
    assert topology(made).nodes[0].publishers[0].size_bytes == size


def test_any_type_with_a_size_is_accepted():
    changes = {"0.publishers.0.msg_type": "LaserScan", "1.subscribers.0.msg_type": "LaserScan"}
    assert topology(declared(**changes, **{"0.publishers.0.msg_size": 5})).nodes[0].publishers[0].size_bytes == 5


PUBLISHER, SUBSCRIBER, CLIENT = "0.publishers.0.", "1.subscribers.0.", "1.clients.0."


@pytest.mark.parametrize(
    ("changes", "line_has", "words"),
    [
        ({"0.publisher": []}, '"publisher"', ["nodes[0].publisher: unknown key 'publisher'", "did you mean 'publishers'?"]),
        ({PUBLISHER + "perod_ms": 1}, '"perod_ms"', ["unknown key 'perod_ms'", "did you mean 'period_ms'?"]),
        ({PUBLISHER + "period_ms": 0}, '"period_ms": 0', ["nodes[0].publishers[0].period_ms: is 0", "above 0"]),
        ({PUBLISHER + "period_ms": -3}, '"period_ms": -3', ["period_ms: is -3", "above 0"]),
        ({CLIENT + "period_ms": 0}, '"period_ms": 0', ["nodes[1].clients[0].period_ms: is 0"]),
        ({PUBLISHER + "period_ms": None}, '"topic_name"', ["says neither 'period_ms' nor 'freq_hz'"]),
        ({PUBLISHER + "freq_hz": 5}, '"freq_hz"', ["freq_hz: is given together with 'period_ms'"]),
        ({PUBLISHER + "period_ms": "10"}, '"period_ms"', ['is "10"', "must be a number"]),
        ({PUBLISHER + "period_ms": True}, '"period_ms"', ["is true", "must be a number"]),
        ({PUBLISHER + "period_ms": 1e-9}, '"period_ms"', ["between 10 µs and an hour"]),
        ({PUBLISHER + "period_ms": 1e307}, '"period_ms"', ["is 1e+307", "between 10 µs and an hour"]),
        ({PUBLISHER + "period_ms": 10**400}, '"period_ms"', ["is 1000", "that a program can read"]),
        ({PUBLISHER + "period_ms": None, PUBLISHER + "freq_hz": 1e-308}, '"freq_hz"', ["is 1e-308", "an hour"]),
        ({PUBLISHER + "period_ms": None, PUBLISHER + "freq_hz": 10**400}, '"freq_hz"', ["is 1000"]),
        ({"0.number": 10**400}, '"number"', ["is 1000"]),
        ({PUBLISHER + "msg_type": "x" * 10_000}, '"xxx', ["msg_type: has 10000 characters", "at most 200"]),
        ({PUBLISHER + "k" * 10_000: 1}, '"publishers"', ["publishers[0]: has a key of 10000 characters"]),
        ({PUBLISHER + "topic_name": 7}, '"topic_name"', ["topic_name: is 7", "must be a text"]),
        ({PUBLISHER + "topic_name": None}, '"msg_type"', ["lacks the key 'topic_name'"]),
        ({PUBLISHER + "topic_name": "a b"}, '"a b"', ["is 'a b', which is no name of ROS 2"]),
        ({PUBLISHER + "topic_name": "count"}, '"subscribers"', ["listener subscribes to /counts, which no node publishes", "did you mean '/count'?"]),
        ({CLIENT + "service_name": "sums"}, '"sums"', ["listener asks /sums, which no node serves", "did you mean '/sum'?"]),
        ({"0.servers": []}, '"clients"', ["listener asks /sum, which no node serves"]),
        ({"1.node_name": "talker"}, '"listener"', ["node_name: 'talker' is there twice"]),
        ({SUBSCRIBER + "msg_type": "stamped10b"}, '"subscribers"', ["/counts is stamped10b to listener, and stamped_int64 to talker"]),
        ({CLIENT + "srv_type": "stamped12b"}, '"clients"', ["/sum is stamped12b to listener, and stamped10b to its server"]),
        ({PUBLISHER + "qos_reliability": "best_effort"}, '"subscribers"', ["asks more of /counts than talker offers"]),
        ({SUBSCRIBER + "qos_durability": "transient_local"}, '"subscribers"', ["asks more of /counts than talker offers"]),
        ({PUBLISHER + "qos_reliability": "best_efort"}, '"qos_reliability"', ["is 'best_efort'", "did you mean 'best_effort'?"]),
        ({PUBLISHER + "qos_history": "keep_all"}, '"qos_history"', ["is 'keep_all'"]),
        ({PUBLISHER + "qos_deadline": "10ms"}, '"qos_deadline"', ["is '10ms'", "only 'default' can be measured"]),
        ({PUBLISHER + "qos_depth": 0}, '"qos_depth"', ["is 0", "a whole number from 1"]),
        ({CLIENT + "qos_reliability": "best_effort"}, '"qos_reliability"', ["services have ROS 2's own: reliable"]),
        ({PUBLISHER + "msg_type": "stamped_vector"}, '"stamped_vector"', ["its size is unknown", 'add "msg_size"']),
        ({PUBLISHER + "msg_type": "stampd10b"}, '"stampd10b"', ["the type is not known", "did you mean 'stamped10b'?"]),
        ({PUBLISHER + "msg_size": 9}, '"msg_size"', ["is 9, but stamped_int64 has 8 B"]),
        ({PUBLISHER + "msg_size": -1, PUBLISHER + "msg_type": "x"}, '"msg_size"', ["is -1", "a whole number from 0"]),
        ({PUBLISHER + "msg_type": "stamped999mb"}, '"stamped999mb"', ["at most 67108864 B"]),
        ({PUBLISHER + "msg_pass_by": "value"}, '"msg_pass_by"', ["is 'value'", "known are: shared_ptr, unique_ptr"]),
        ({"0.number": 0}, '"number"', ["number: is 0"]),
        ({"0.number": 1.5}, '"number"', ["number: is 1.5"]),
        ({"0.executor_id": -1}, '"executor_id"', ["executor_id: is -1"]),
        ({"0.node_name": "n" * 101}, '"nnn', ["has 101 characters", "at most 100"]),
        ({"0.node_name": "9lives"}, '"9lives"', ["is no name of ROS 2"]),
        ({"0.publishers": {}}, '"publishers"', ["publishers: is an object", "must be a list"]),
        ({"0": 5}, "5", ["nodes[0]: is 5", "must be an object"]),
    ],
)  # fmt: skip
def test_invalid_content_is_refused_with_line_and_key(changes, line_has, words):
    text = text_of(declared(**changes))
    expected = refusal(text)
    mark = line_has if line_has in text else '"node_name": "talker"'
    place = text.rindex(mark) if changes == {"1.node_name": "talker"} else text.index(mark)
    # Errors of a whole entry have the line of its opening brace.
    lines = {text[:place].count("\n") + 1 + shift for shift in (-1, 0, 1)}
    assert any(expected.startswith(f"two.json, line {line}: ") for line in lines), expected
    assert all(each in expected for each in words), expected


def test_line_is_that_of_the_key():
    text = text_of(declared(**{PUBLISHER + "period_ms": 0}))
    line = line_of(text, '"period_ms": 0')
    assert refusal(text).startswith(f"two.json, line {line}: ")
    split = text.replace('"period_ms": 0', '"period_ms"\n\n:\n\n0')
    assert refusal(split).startswith(f"two.json, line {line}: ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["line 1", "Expecting value"]),
        ("{", ["line 1", "Expecting property name"]),
        ('{"nodes": [\n  {"node_name": "a",}\n]}', ["line 2"]),
        ('{"nodes": [\n  1 2]}', ["line 2", "delimiter"]),
        ('{"nodes": []} x', ["Extra data"]),
        ('{"nodes": []}', ["declares no nodes"]),
        ("{}", ["lacks the key 'nodes'"]),
        ("[]", ["is a list", "must be an object"]),
        ('{"nodes": [],\n "nodes": []}', ["line 2", "key 'nodes' stands there twice"]),
        ('{"nodes": [\n{"node_name": "a", "publishers": [{"period_ms": NaN}]}]}', ["line 2", "nan is no number"]),
        ('{"nodes": [\n{"node_name": "a", "publishers": [{"period_ms": 1e999}]}]}', ["line 2", "inf is no number"]),
        ("[" * 5000, ["nested too deeply"]),
        ('{"nodes": ' + "9" * 5000 + "}", ["line 1"]),
        ('{"nodes": [{"node_name": "a"}]}', ["no node receives messages"]),
        ('{"nodes": [], "' + "k" * 9999 + '": 1, "' + "k" * 9999 + '": 2}', ["line 1", "stands there twice"]),
        ('{"nodes": [{"node_name": "a", "number": 400}, {"node_name": "b", "number": 400}]}', ["more nodes than"]),
    ],
)  # fmt: skip
def test_broken_files_are_refused(text, words):
    expected = refusal(text)
    assert expected.startswith("two.json, line ")
    assert all(each in expected for each in words), expected


def test_error_message_has_a_limited_length():
    for changes in (
        {PUBLISHER + "period_ms": "9" * 50_000},
        {PUBLISHER + "period_ms": 10**4000},
        {PUBLISHER + "topic_name": "t" * 50_000},
        {PUBLISHER + "msg_pass_by": "v" * 50_000},
        {"0." + "k" * 50_000: 1},
    ):
        assert len(refusal(text_of(declared(**changes)))) < 400


def test_too_many_endpoints_are_refused():
    end = {"topic_name": "t", "msg_type": "stamped10b"}
    many = [{"topic_name": f"t{number}", "msg_type": "stamped10b", "period_ms": 10} for number in range(20)]
    nodes = [{"node_name": "a", "number": 200, "publishers": many}, {"node_name": "b", "subscribers": [end]}]
    assert "nodes[0]: declares more publishers, subscribers, …" in refusal(text_of({"nodes": nodes}))


@pytest.mark.acceptance
def test_huge_file_is_processed_in_seconds():
    """No quadratic search over its lines."""
    publishers = ",\n".join(
        f'{{"topic_name": "t{n}", "msg_type": "stamped10b", "period_ms": 10}}' for n in range(55_000)
    )
    text = f'{{"nodes": [{{"node_name": "a", "publishers": [\n{publishers}]}}]}}'
    assert len(text) < LONGEST_FILE
    began_s = time.process_time()
    assert "declares more publishers" in refusal(text)
    assert time.process_time() - began_s < 10


def test_two_of_one_name_in_a_node_are_refused():
    made = copy.deepcopy(TWO)
    made["nodes"][0]["publishers"] *= 2
    assert "topic_name: '/counts' is there twice" in refusal(text_of(made))
    made = copy.deepcopy(TWO)
    made["nodes"][0]["servers"] *= 2
    assert "service_name: '/sum' is there twice" in refusal(text_of(made))


def test_unreadable_file_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match=r"no\.json cannot be read: No such file"):
        read_topology(str(tmp_path / "no.json"))
    (tmp_path / "latin.json").write_bytes(b'{\n"nodes": "\xe9"}')
    with pytest.raises(ConfigurationError, match="line 2: is no UTF-8"):
        read_topology(str(tmp_path / "latin.json"))
    with pytest.raises(ConfigurationError, match="cannot be read: Is a directory"):
        read_topology(str(tmp_path))
    with pytest.raises(ConfigurationError, match="is a pipe or a device"):
        read_topology("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigurationError, match="is a pipe or a device"):
        read_topology(str(tmp_path / "pipe"))
    with pytest.raises(ConfigurationError, match="embedded null byte"):
        read_topology("a\0b")
    with pytest.raises(ConfigurationError, match="File name too long"):
        read_topology("n" * 300)
    with (tmp_path / "long.json").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ConfigurationError, match=r"long\.json is longer than 4096 KiB"):
        read_topology(str(tmp_path / "long.json"))


def test_hostile_file_name_is_harmless(tmp_path):
    for stem in (b"caf\xe9", b"\x1b[31mred", b"two\nlines", b"n" * 240, "\u202e\U0001f4a9".encode() * 30):
        file = os.path.join(os.fsencode(tmp_path), stem + b".json")  # noqa: PTH118 - of bytes
        with open(file, "w") as written:  # noqa: PTH123
            written.write(text_of(TWO))
        name = read_topology(os.fsdecode(file)).name
        assert name == one_line(name)
        assert len(f"{name}.log".encode()) <= 255


def test_built_in_topologies_have_the_seeds_size():
    assert our_topologies() == ["packing_hall", "pick_cell"]
    cell, hall = read_topology("pick_cell"), read_topology("packing_hall")
    assert (len(cell.nodes), len(hall.nodes)) == (10, 20)
    assert len(list(cell.subscriptions)) + len(list(cell.clients)) >= 17
    assert len(list(hall.publishers)) >= 20
    assert any(True for _ in cell.clients)
    assert max(each.size_bytes for _, each in hall.publishers) > 250_000


def test_a_changed_file_has_another_digest():
    assert topology().digest == topology().digest
    assert topology(declared(**{PUBLISHER + "period_ms": 20})).digest != topology().digest


def test_receivers_only_file_is_refused_with_a_remedy(tmp_path, monkeypatch):
    """Such as iRobot's ``debug_mont_blanc_reliable.json``, whose node subscribes to topics of another file."""
    monkeypatch.chdir(tmp_path)
    debug = {"nodes": [{"node_name": "debug_node", "subscribers": TWO["nodes"][1]["subscribers"]}]}
    (tmp_path / "OTHER.json").write_text(text_of(TWO))
    (tmp_path / "debug.json").write_text(text_of(debug))
    with pytest.raises(ConfigurationError) as refused:
        read_topology("debug.json")
    assert refused.value.message == (
        "debug.json declares nothing that publishes or serves: its 1 subscribers and clients (/counts, …) are meant to "
        "run together with the nodes of another file"
    )
    command = refused.value.remedy.removeprefix("measure both files as one: ")
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    subprocess.run(["sh", "-c", command], check=True)
    assert [node.name for node in read_topology("both.json").nodes] == ["talker", "listener", "debug_node"]
