"""Topics that each node publishes and receives, including silent ones."""

from __future__ import annotations

from pytest_ldos.base.ros2 import PathSpec
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.lineage import find_path
from pytest_ldos.trace.flow.timeliness import connections_on, summarize_connections
from tests.builders.ros2 import Recording

MS = 1_000_000


def relayed():
    """/talker sends five messages on /a; /relay takes four, one late, and publishes /b for each; /c is silent."""
    recording = Recording()
    talker, relay = recording.process(1), recording.process(2)
    sender, thread = talker.node("/talker").publisher("/a"), talker.thread()
    node = relay.node("/relay")
    received, made, other = node.subscription("/a"), node.publisher("/b"), relay.thread()
    node.publisher("/c")
    node.subscription("/d")
    for number, latency in enumerate([1, 1, None, 5, 1]):
        message = thread.at((1 + 10 * number) * MS).publish(sender)
        if latency is not None:
            with other.at((1 + 10 * number + latency) * MS).receiving(received, message):
                other.publish(made)
    return build_flow(recording.model())


def test_rates_latencies_and_lateness():
    rows = {(row["topic"], row["role"]): row for row in summarize_connections(relayed()).iter_rows(named=True)}
    assert {key: row["messages"] for key, row in rows.items()} == {
        ("/a", "publishes"): 5,
        ("/a", "subscribes"): 4,
        ("/b", "publishes"): 4,
        ("/c", "publishes"): 0,
        ("/d", "subscribes"): 0,
    }
    got = rows["/a", "subscribes"]
    assert (got["late"], got["too_late"], got["lost"]) == (1, 0, 1)
    assert 0.9 * MS < got["p50_ns"] < 1.1 * MS
    assert 4.9 * MS < got["p99_ns"] < 5.1 * MS
    assert round(rows["/a", "publishes"]["rate_hz"]) == 100
    assert rows["/c", "publishes"]["rate_hz"] is None
    assert rows["/a", "publishes"]["p50_ns"] is None
    assert rows["/d", "subscribes"]["late"] is None


def test_connections_of_a_path():
    flow = relayed()
    found = connections_on(flow, find_path(flow, PathSpec(name="p", via=("/a", "/b"))))
    assert found.rows() == [(0, "/a", "publishes"), (1, "/a", "subscribes"), (1, "/b", "publishes")]
    assert connections_on(flow, find_path(flow, PathSpec(name="q", via=("planning", "executing")))).rows() == []
