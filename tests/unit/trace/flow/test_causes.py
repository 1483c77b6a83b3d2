"""Causes of publications: direct, periodic asynchronous and partial synchronous."""

from __future__ import annotations

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.ros2 import LinkRule, LinkSpec, PathSpec, Ros2
from pytest_ldos.trace.flow.build import build_flow
from tests.builders.ros2 import Message, Recording


class Node:
    """A node with inputs, outputs and a timer; its messages come from outside the trace.

    Messages and publications are numbered by time, like the rows of their tables.
    """

    def __init__(self, inputs=("/a", "/b"), outputs=("/out",)) -> None:
        self.recording = Recording()
        self.process = self.recording.process()
        self.node = self.process.node("/fusion")
        self.inputs = {topic: self.node.subscription(topic) for topic in inputs}
        self.outputs = {topic: self.node.publisher(topic) for topic in outputs}
        self.timer = self.node.timer(100)
        self.thread = self.process.thread()

    def get(self, at, topic, *outputs, thread=None, lasts=10):
        """Receives a message and publishes `outputs` in its callback."""
        thread = (thread or self.thread).at(at - 3)
        with thread.receiving(self.inputs[topic], Message(at)):
            for output in outputs:
                thread.publish(self.outputs[output])
            thread.at(at + lasts)

    def tick(self, at, *outputs, thread=None):
        thread = (thread or self.thread).at(at)
        with thread.running(self.timer):
            for output in outputs:
                thread.publish(self.outputs[output])

    def annotate(self, event, inputs=("/a", "/b"), outputs=("/out",)):
        self.node.link(event, [self.inputs[each] for each in inputs], [self.outputs[each] for each in outputs])

    def uses(self, *paths, rule=None) -> list[tuple[int, int]]:
        """(take, publication), by publication."""
        found = build_flow(self.recording.model(), paths).uses.sort("publication", "take")
        return [(take, out) for take, out, its in found["take", "publication", "rule"].rows() if rule in (None, its)]


def declared(rule, inputs=("/a", "/b"), outputs=("/out",), node="/fusion"):
    link = LinkSpec(rule=rule, node=node, inputs=inputs, outputs=outputs)
    return PathSpec(name="fusion", via=("/a", "/out"), links=(link,))


def test_publication_in_a_callback_uses_its_message():
    node = Node(outputs=("/x", "/y"))
    node.get(1000, "/a", "/x", "/y", "/x")
    node.get(2000, "/b")
    node.get(3000, "/a", "/y")
    assert node.uses(rule="direct") == [(0, 0), (0, 1), (0, 2), (2, 3)]


def test_publication_outside_of_callbacks_has_no_cause():
    node = Node()
    node.get(1000, "/a")
    node.thread.at(1500).publish(node.outputs["/out"])
    node.get(2000, "/a")
    node.thread.at(2500).publish(node.outputs["/out"])
    flow = build_flow(node.recording.model())
    assert (len(flow.causes), len(flow.uses), len(flow.triggers)) == (0, 0, 2)


def test_publication_of_another_thread_has_another_cause():
    node = Node()
    other = node.process.thread(2)
    node.get(1000, "/a", lasts=500)
    other.at(1200).publish(node.outputs["/out"])
    node.get(1300, "/b", "/out", thread=other)
    assert node.uses() == [(1, 1)]


def test_callback_still_running_at_the_end_of_the_trace():
    node = Node()
    thread = node.thread.at(1000)
    thread.take(node.inputs["/a"], Message(1000))
    with thread.running(node.inputs["/a"], ends=False):
        thread.at(1500).publish(node.outputs["/out"])
    assert node.uses() == [(0, 0)]


def test_callback_with_lost_end_is_over_after_the_next_run():
    node = Node()
    thread = node.thread.at(1000)
    thread.take(node.inputs["/a"], Message(1000))
    with thread.running(node.inputs["/a"], ends=False):
        thread.at(1100)
    node.get(2000, "/b")
    thread.at(3000).publish(node.outputs["/out"])
    assert node.uses() == []


def test_the_innermost_of_nested_callbacks_is_the_cause():
    node = Node()
    thread = node.thread.at(1000).take(node.inputs["/a"], Message(1000))
    with thread.running(node.inputs["/a"]):
        thread.at(1100).take(node.inputs["/b"], Message(1100))
        with thread.running(node.inputs["/b"]):
            thread.publish(node.outputs["/out"])
        thread.at(1200).publish(node.outputs["/out"])
    assert node.uses() == [(1, 0), (0, 1)]


def test_polled_messages_are_used_by_later_publications():
    node = Node()
    with node.thread.at(1000).running(node.timer):
        node.thread.publish(node.outputs["/out"])
        node.thread.at(1100).take(node.inputs["/a"], Message(5))
        node.thread.at(1200).publish(node.outputs["/out"])
        node.thread.at(1300).take(node.inputs["/b"], Message(6))
        node.thread.at(1400).publish(node.outputs["/out"])
    flow = build_flow(node.recording.model())
    assert flow.triggers["polled"].to_list() == [True, True]
    assert node.uses() == [(0, 1), (0, 2), (1, 2)]


def test_a_polled_message_does_not_trigger_the_next_callback():
    """Not even if the next callback is unknown: both timers are older than the trace."""
    node = Node()
    node.recording.announcing = False
    unknown = node.node.timer(100)
    with node.thread.at(1000).running(unknown):
        node.thread.take(node.inputs["/a"], Message(5))
    with node.thread.at(2000).running(unknown):
        node.thread.publish(node.outputs["/out"])
    flow = build_flow(node.recording.model())
    assert flow.triggers.select("take", "callback_run", "polled").rows() == [(0, 0, True)]
    assert len(flow.uses) == 0


def test_timer_is_not_triggered_by_a_message():
    node = Node()
    node.thread.at(1000).take(node.inputs["/a"], Message(5))
    node.tick(1010, "/out")
    flow = build_flow(node.recording.model())
    assert (len(flow.triggers), len(flow.uses)) == (0, 0)


def test_intra_process_callback_has_no_middleware_message():
    recording = Recording()
    process = recording.process()
    node, thread = process.node("/app"), process.thread()
    subscription, publisher = node.subscription("/in", intra=True), node.publisher("/in")
    message = thread.at(1000).publish_intra(publisher, {subscription: 0})
    thread.at(1100).take(subscription, Message(7))
    with thread.running(subscription):
        pass
    with thread.receiving(subscription, message):
        pass
    flow = build_flow(recording.model())
    assert flow.triggers.select("take", "callback_run").rows() == [(0, 0), (1, 1)]


def test_periodic_async_uses_the_last_of_each_input():
    node = Node()
    node.annotate(Ros2.LINK_PERIODIC_ASYNC)
    node.tick(500, "/out")  # 0: nothing came yet
    node.get(1000, "/a")  # 0
    node.tick(1500, "/out")  # 1: only /a came
    node.get(2000, "/a")  # 1, overwritten
    node.get(2100, "/a")  # 2
    node.get(2200, "/b")  # 3
    node.tick(2500, "/out")  # 2
    node.tick(3500, "/out")  # 3: the same again
    assert node.uses(rule="periodic_async") == [(0, 1), (2, 2), (3, 2), (2, 3), (3, 3)]


def test_partial_sync_uses_each_message_once():
    node = Node()
    node.annotate(Ros2.LINK_PARTIAL_SYNC)
    node.get(1000, "/a")  # 0, overwritten
    node.get(1100, "/a")  # 1
    node.get(1200, "/b", "/out")  # 2
    node.get(2000, "/b")  # 3
    node.get(2100, "/a", "/out")  # 4
    node.get(3000, "/a", "/out")  # 5, without a new /b
    assert node.uses() == [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2)]
    assert node.uses(rule="direct") == [(2, 0), (4, 1), (5, 2)]


def test_partial_sync_of_two_publishers():
    """Each publisher tracks its own inputs: a message used by one is new to the other."""
    node = Node(outputs=("/x", "/y"))
    node.annotate(Ros2.LINK_PARTIAL_SYNC, outputs=("/x", "/y"))
    node.get(1000, "/a")  # 0
    node.get(1100, "/b", "/x", "/y")  # 1
    node.get(2000, "/a")  # 2
    node.get(2100, "/b", "/x")  # 3: publication 2
    node.get(2200, "/b", "/y")  # 4: publication 3
    assert node.uses() == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 2), (3, 2), (2, 3), (4, 3)]


def test_partial_sync_uses_messages_of_other_threads_next():
    """/a's second message is stored while the publishing callback runs."""
    node = Node()
    other = node.process.thread(2)
    node.annotate(Ros2.LINK_PARTIAL_SYNC)
    node.get(1000, "/a")  # 0
    thread = node.thread.at(1097).take(node.inputs["/b"], Message(1))  # 1
    with thread.running(node.inputs["/b"]):
        node.get(1150, "/a", thread=other)  # 2
        thread.at(1300).publish(node.outputs["/out"])
    node.get(2000, "/b", "/out")  # 3
    assert node.uses() == [(0, 0), (1, 0), (2, 1), (3, 1)]


def test_periodic_async_with_polled_inputs():
    node = Node()
    node.annotate(Ros2.LINK_PERIODIC_ASYNC)
    for at in (1000, 2000):
        with node.thread.at(at).running(node.timer):
            node.thread.take(node.inputs["/a"], Message(at))
            node.thread.publish(node.outputs["/out"])
            node.thread.take(node.inputs["/b"], Message(at))
    assert node.uses() == [(0, 0), (1, 1), (2, 1)]


@pytest.mark.parametrize(
    ("event", "rule"),
    [(Ros2.LINK_PERIODIC_ASYNC, LinkRule.PERIODIC_ASYNC), (Ros2.LINK_PARTIAL_SYNC, LinkRule.PARTIAL_SYNC)],
)
def test_declared_link_equals_an_annotated_one(event, rule):
    annotated, plain = Node(), Node()
    annotated.annotate(event)
    for node in (annotated, plain):
        for at in range(1000, 5000, 700):
            node.get(at, "/a")
            node.get(at + 200, "/b", *["/out"] * (at % 2))
            node.tick(at + 300, "/out")
    assert plain.uses() == []
    assert plain.uses(declared(rule)) == annotated.uses() != []
    assert annotated.uses(declared(rule)) == annotated.uses()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inputs": ("/a", "/c")}, r"/fusion subscribes to /c, which it does not\n.*it subscribes to /a, /b"),
        ({"inputs": ("a",)}, r"subscribes to a, which it does not\n.*it subscribes to /a, /b"),
        ({"outputs": ("/a",)}, r"/fusion publishes on /a, which it does not\n.*it publishes on /out"),
    ],
)
def test_declared_link_of_unknown_topics_is_refused(options, message):
    with pytest.raises(ConfigurationError, match=message):
        Node().uses(declared(LinkRule.PARTIAL_SYNC, **options))


def test_declared_link_of_a_node_without_topics_is_refused():
    node = Node(outputs=())
    with pytest.raises(ConfigurationError, match="it publishes on nothing"):
        node.uses(declared(LinkRule.PARTIAL_SYNC))


def test_declared_link_of_an_absent_node_is_ignored():
    assert Node().uses(declared(LinkRule.PARTIAL_SYNC, node="/elsewhere")) == []
