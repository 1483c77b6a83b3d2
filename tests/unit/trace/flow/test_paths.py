"""Passages along declared paths, and lineages of instances."""

from __future__ import annotations

import pytest

from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.ros2 import Marker, PathSpec, Ros2
from pytest_ldos.trace.flow import lineage as paths
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.lineage import Kind, LineageIndex, find_path
from tests.builders.ros2 import Entity, Message, Recording, Thread

STEP = 100


class Chain:
    """Nodes that each publish one topic from others, one after the other.

    `node` makes one; `send` and `relay` run it on its own thread, `STEP` after the last action.
    """

    def __init__(self) -> None:
        self.recording = Recording()
        self.now = 1000
        self.threads: dict[str, Thread] = {}
        self.publishers: dict[str, Entity] = {}
        self.subscriptions: dict[tuple[str, str], Entity] = {}
        self.messages: dict[str, Message] = {}

    def node(self, output, *inputs, sync=False):
        process = self.recording.process(len(self.threads) + 1)
        node = process.node(f"/to{output.replace('/', '_')}")
        self.threads[output] = process.thread()
        self.publishers[output] = node.publisher(output)
        self.subscriptions |= {(each, output): node.subscription(each) for each in inputs}
        if sync:
            own = [self.subscriptions[each, output] for each in inputs]
            node.link(Ros2.LINK_PARTIAL_SYNC, own, [self.publishers[output]])

    def send(self, output):
        """Publishes a message without a cause."""
        self.now += STEP
        self.messages[output] = self.threads[output].at(self.now).publish(self.publishers[output])
        return self

    def relay(self, output, source, *, publishes=True, message=None):
        """Publishes on `output` from the last message of `source`."""
        self.now += STEP
        thread = self.threads[output].at(self.now)
        with thread.receiving(self.subscriptions[source, output], message or self.messages[source]):
            if publishes:
                self.messages[output] = thread.publish(self.publishers[output])
        return self

    def flow(self):
        return build_flow(self.recording.model())

    def find(self, *via, **options):
        return find_path(self.flow(), PathSpec(name="path", via=via, **options))


def passages(found):
    return found.table.select("from_publication", "to_publication").rows()


def line(length=4):
    """/0 → /1 → /2 → …"""
    chain = Chain()
    chain.node("/0")
    for number in range(1, length):
        chain.node(f"/{number}", f"/{number - 1}")
    return chain


def test_passages_with_and_without_named_topics():
    chain = line()
    for _ in range(3):
        chain.send("/0").relay("/1", "/0").relay("/2", "/1").relay("/3", "/2")
    expected = [(0, 3), (4, 7), (8, 11)]
    for via in (("/0", "/3"), ("/0", "/2", "/3"), ("/0", "/1", "/2", "/3")):
        found = chain.find(*via)
        assert passages(found) == expected
        # Three hops of STEP; the take before the last publish call is 4 ns, its rmw layer 2 ns later.
        assert found.table["latency_ns"].to_list() == [3 * STEP + 6] * 3
        assert found.table["takes"].to_list() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


@pytest.mark.parametrize("via", [("/3", "/0"), ("/0", "/3", "/2"), ("/0", "/9"), ("/9", "/0"), ("/0", "/9", "/3")])
def test_path_without_passages(via):
    found = line().send("/0").relay("/1", "/0").relay("/2", "/1").relay("/3", "/2").find(*via)
    assert len(found) == 0
    assert found.table.columns[:3] == ["from_publication", "to_publication", "takes"]


def test_incomplete_passage_is_ignored():
    chain = line(3).send("/0").relay("/1", "/0", publishes=False).send("/1").relay("/2", "/1")
    assert passages(chain.find("/1", "/2")) == [(1, 2)]
    assert passages(chain.find("/0", "/2")) == []


def test_message_with_several_results_has_several_passages():
    chain = line(2).send("/0").relay("/1", "/0").relay("/1", "/0")
    assert passages(chain.find("/0", "/1")) == [(0, 1), (0, 2)]


def diamond():
    """/a → /b and /c; both → /d."""
    chain = Chain()
    chain.node("/a")
    chain.node("/b", "/a")
    chain.node("/c", "/a")
    chain.node("/d", "/b", "/c", sync=True)
    return chain


def test_diamond_begins_with_its_newest_input():
    chain = diamond().send("/a").relay("/b", "/a").relay("/d", "/b", publishes=False)
    chain.send("/a").relay("/c", "/a").relay("/d", "/c")
    assert passages(chain.find("/a", "/d")) == [(2, 4)]
    assert passages(chain.find("/a", "/b", "/d")) == [(0, 4)]


def test_diamond_of_one_message_is_one_passage():
    chain = diamond().send("/a").relay("/b", "/a").relay("/c", "/a")
    chain.relay("/d", "/b", publishes=False).relay("/d", "/c")
    assert passages(chain.find("/a", "/d")) == [(0, 3)]


def diamonds(count):
    """Each stage doubles the number of ways from the first message to the last."""
    chain = Chain()
    chain.node("/0")
    for number in range(1, count + 1):
        chain.node(f"/left{number}", f"/{number - 1}")
        chain.node(f"/right{number}", f"/{number - 1}")
        chain.node(f"/{number}", f"/left{number}", f"/right{number}", sync=True)
    chain.send("/0")
    for number in range(1, count + 1):
        left, right, last = f"/left{number}", f"/right{number}", f"/{number}"
        chain.relay(left, f"/{number - 1}").relay(right, f"/{number - 1}")
        chain.relay(last, left, publishes=False).relay(last, right)
    return chain


def test_search_effort_grows_with_messages_not_ways(monkeypatch):
    monkeypatch.setattr(paths, "_MOST_ROWS", 1000)
    found = diamonds(40).find("/0", "/40")
    assert passages(found) == [(0, 120)]
    assert len(found.table["takes"][0]) == 80


def test_too_large_search_is_refused(monkeypatch):
    monkeypatch.setattr(paths, "_MOST_ROWS", 2)
    chain = line(2)
    for _ in range(3):
        chain.send("/0").relay("/1", "/0")
    with pytest.raises(LdosError, match=r"path 'path' .* too many .*\n.*name more of the topics"):
        chain.find("/0", "/1")


def test_cyclic_topics():
    """/command → /state → /command …: each passage is one round."""
    chain = Chain()
    chain.node("/command", "/state")
    chain.node("/state", "/command")
    chain.send("/command")
    for _ in range(4):
        chain.relay("/state", "/command").relay("/command", "/state")
    assert passages(chain.find("/command", "/state")) == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert passages(chain.find("/state", "/command")) == [(1, 2), (3, 4), (5, 6), (7, 8)]
    assert passages(chain.find("/command", "/state", "/command")) == [(0, 2), (2, 4), (4, 6), (6, 8)]


def test_a_path_from_a_topic_to_itself():
    chain = Chain()
    chain.node("/counter", "/counter")
    chain.send("/counter").relay("/counter", "/counter").relay("/counter", "/counter")
    assert passages(chain.find("/counter", "/counter")) == [(0, 1), (1, 2)]


def test_deadlines():
    chain = line(2)
    for late in (0, 500, 900):
        chain.send("/0")
        chain.now += late
        chain.relay("/1", "/0")
    latencies = chain.find("/0", "/1").table["latency_ns"].to_list()
    assert latencies == [STEP + 6, STEP + 506, STEP + 906]
    assert chain.find("/0", "/1").missed == 0
    for deadline_ns, missed in ((105, 3), (106, 2), (606, 1), (1006, 0)):
        assert chain.find("/0", "/1", deadline_ms=deadline_ns / 1e6).missed == missed


def phases(*entered):
    recording = Recording()
    for at, goal_id, phase in entered:
        recording.emit(Marker.PHASE, at, goal_id=goal_id, phase=phase)
    return build_flow(recording.model())


def test_a_path_of_phases():
    flow = phases(
        (100, "one", "goal_sent"),
        (150, "one", "planning"),
        (160, "two", "goal_sent"),
        (170, "one", "planning"),
        (180, "one", "executing"),
        (400, "two", "executing"),
        (900, "two", "planning"),
    )
    found = find_path(flow, PathSpec(name="goal", via=("goal_sent", "executing"), deadline_ms=0.0001))
    assert found.table.select("goal_id", "begin_ns", "end_ns", "latency_ns").rows() == [
        ("one", 100, 180, 80),
        ("two", 160, 400, 240),
    ]
    assert found.missed == 1
    assert len(find_path(flow, PathSpec(name="goal", via=("goal_sent", "planning", "result")))) == 0


def test_goal_with_other_phase_order_has_no_passage():
    flow = phases((100, "one", "goal_sent"), (400, "one", "executing"), (900, "one", "planning"))
    via = ("goal_sent", "planning", "executing")
    assert len(find_path(flow, PathSpec(name="goal", via=via))) == 0


def test_a_lineage_of_a_diamond():
    chain = diamond().send("/a").relay("/b", "/a").relay("/c", "/a")
    chain.relay("/d", "/b", publishes=False).relay("/d", "/c")
    index = LineageIndex(chain.flow())
    back = index.backward(Kind.PUBLICATION, 3)
    assert back.topics == ["/a", "/b", "/c", "/d"]
    assert back.origin.label == "/d"
    assert {link.rule for link in back.links} == {"transport", "trigger", "publish", "partial_sync"}
    forth = index.forward(Kind.PUBLICATION, 0)
    assert {(each.kind, each.id) for each in back.instances} < {(each.kind, each.id) for each in forth.instances}
    assert forth.topics == ["/a", "/b", "/c", "/d"]
    assert [link.rule for link in index.forward(Kind.TAKE, 3).links] == ["trigger", "publish"]


def test_a_lineage_in_a_loop_ends():
    chain = Chain()
    chain.node("/command", "/state")
    chain.node("/state", "/command")
    chain.send("/command")
    for _ in range(50):
        chain.relay("/state", "/command").relay("/command", "/state")
    index = LineageIndex(chain.flow())
    assert len(index.forward(Kind.PUBLICATION, 0).instances) == 1 + 100 * 3
    # From the first message, 2 ns after its call, to the end of the last callback, 7 ns after its take.
    passed = index.backward(Kind.PUBLICATION, 100).instances
    assert max(each.end_ns for each in passed) - min(each.begin_ns for each in passed) == 100 * STEP + 5


def test_lineage_excludes_messages_taken_after_publishing():
    """A callback publishes first and polls a message afterwards."""
    recording = Recording()
    process = recording.process()
    node, thread = process.node("/node"), process.thread()
    timer, publisher, subscription = node.timer(100), node.publisher("/out"), node.subscription("/in")
    with thread.at(1000).running(timer):
        thread.publish(publisher)
        thread.take(subscription, Message(5))
    index = LineageIndex(build_flow(recording.model()))
    assert [each.kind for each in index.backward(Kind.PUBLICATION, 0).instances] == [
        Kind.CALLBACK_RUN,
        Kind.PUBLICATION,
    ]
    assert [each.kind for each in index.forward(Kind.TAKE, 0).instances] == [Kind.TAKE]


def test_lineage_of_an_unknown_instance_is_refused():
    index = LineageIndex(line().send("/0").flow())
    for kind, instance in ((Kind.PUBLICATION, 1), (Kind.TAKE, 0), (Kind.CALLBACK_RUN, -1)):
        with pytest.raises(IndexError, match=f"there is no {kind} {instance}"):
            index.forward(kind, instance)
