"""Synchronizers and lookups of transforms: what is certain, what is likely, and the reason in words."""

from __future__ import annotations

import pytest

from pytest_ldos.base.ros2 import Caret, LinkRule, LinkSpec, Marker, PathSpec
from pytest_ldos.trace.ctf.stats import Gap
from pytest_ldos.trace.flow.build import build_flow
from tests.builders.ros2 import Message, Recording

FILTER = "message_filters::Subscriber<M>::subscribe(…)::{lambda(std::shared_ptr<M const>)#1}"


class Fusion:
    """A node with message_filters' subscriptions; its messages come from outside the trace, stamped when sent."""

    def __init__(self, *topics: str, outputs=("/out",)) -> None:
        self.recording = Recording()
        self.process = self.recording.process()
        self.node = self.process.node("/fusion")
        self.inputs = {topic: self.node.subscription(topic, symbol=FILTER) for topic in topics}
        self.outputs = {topic: self.node.publisher(topic) for topic in outputs}
        self.thread = self.process.thread()

    def get(self, at, topic, *outputs, header=None, thread=None, lasts=10):
        thread = (thread or self.thread).at(at)
        with thread.receiving(self.inputs[topic], Message(at)):
            if header is not None:
                thread.emit(Marker.HEADER_STAMP, stamp_ns=header)
            for output in outputs:
                thread.publish(self.outputs[output])
            thread.at(at + lasts)

    def flow(self, rule=None, inputs=(), outputs=("/out",), **options):
        links = (
            (LinkSpec(rule=rule, node="/fusion", inputs=inputs or tuple(self.inputs), outputs=outputs),) if rule else ()
        )
        return build_flow(self.recording.model(**options), [PathSpec(name="p", via=("/a", "/out"), links=links)])


def links(flow) -> list[tuple[int, int, int, bool]]:
    """(take, publication, candidates, certain), by publication; both are numbered by time."""
    return sorted(flow.uses["take", "publication", "candidates", "certain"].rows(), key=lambda link: (link[1], link[0]))


def test_complete_sets_of_exact_time_are_certain():
    node = Fusion("/a", "/b")
    node.get(1000, "/a")
    node.get(2000, "/b", "/out")
    node.get(3000, "/b")
    node.get(4000, "/a", "/out")
    flow = node.flow(LinkRule.EXACT_TIME)
    assert links(flow) == [(0, 0, 1, True), (1, 0, 1, True), (2, 1, 1, True), (3, 1, 1, True)]
    assert flow.uncertain == ()


def dropped(**headers) -> Fusion:
    """The second message of /a finds no partner."""
    node = Fusion("/a", "/b")
    for number, (topic, *outputs) in enumerate([("/a",), ("/b", "/out"), ("/a",), ("/a",), ("/b", "/out")]):
        node.get(1000 * number, topic, *outputs, header=headers.get("stamps", [None] * 5)[number])
    return node


def test_after_a_dropped_input_the_likely_message_is_linked():
    flow = dropped().flow(LinkRule.EXACT_TIME)
    assert links(flow)[2:] == [(3, 1, 2, False), (4, 1, 1, True)]
    (remark,) = flow.uncertain
    assert remark == (
        "/fusion → /out (exact_time): ≈ in 1 of 2 publications: one of 2 messages on /a was used; others were dropped "
        "or waited, and no event has the stamps of their headers (ldos:header_stamp)"
    )


def test_stamps_of_headers_decide():
    flow = dropped(stamps=[50, 50, 60, 70, 60]).flow(LinkRule.EXACT_TIME)
    assert links(flow)[2:] == [(2, 1, 1, True), (4, 1, 1, True)]
    assert flow.uncertain == ()


def test_stamps_of_caret_are_those_of_the_next_callback():
    node = Fusion("/a")
    node.thread.at(1000).take(node.inputs["/a"], Message(7))
    fields = {"message": 1, "callback": node.inputs["/a"].callback, "source_stamp": 7, "message_timestamp": 5}
    node.thread.emit(Caret.DISPATCH, **fields)
    with node.thread.running(node.inputs["/a"]):
        pass
    assert node.recording.model().header_stamps["time_ns", "stamp_ns"].rows() == [(1003, 5)]


def test_message_that_releases_an_approximate_set_is_not_linked_as_certain():
    node = Fusion("/a", "/b")
    node.get(1000, "/a")
    node.get(1010, "/b")
    node.get(2000, "/a", "/out")
    assert links(node.flow(LinkRule.APPROXIMATE_TIME)) == [(0, 0, 2, False), (1, 0, 1, True)]


def test_two_synchronizers_of_one_node_are_told_apart_by_their_outputs():
    node = Fusion("/a", "/b", "/c", outputs=("/ab", "/ac"))
    node.get(1000, "/a")
    node.get(2000, "/b", "/ab")
    node.get(3000, "/c", "/ac")
    flow = node.flow(LinkRule.EXACT_TIME, ("/a", "/c"), ("/ac",))
    assert [link for link in links(flow) if link[1] == 1] == [(0, 1, 1, True), (2, 1, 1, True)]
    assert not any("/ac" in remark for remark in flow.uncertain)


def test_callbacks_at_the_same_time_have_no_order():
    node = Fusion("/a", "/b")
    other = node.process.thread(2)
    node.get(1000, "/a", lasts=500)
    node.get(1100, "/a", thread=other)
    node.get(2000, "/b", "/out")
    node.get(3000, "/b", "/out")
    flow = node.flow(LinkRule.EXACT_TIME)
    assert [sure for take, _, _, sure in links(flow) if take < 2] == [False, False]
    assert "its callbacks ran at the same time, so their order is not known" in flow.uncertain[0]


def test_lost_events_leave_only_the_message_of_the_callback():
    node = Fusion("/a", "/b")
    node.get(1000, "/a")
    node.get(2000, "/b", "/out")
    flow = node.flow(LinkRule.EXACT_TIME, gaps=[Gap(from_ns=1500, to_ns=1600, events=3, packets=0)])
    assert links(flow) == [(0, 0, 2, False), (1, 0, 1, True)]
    assert flow.uncertain[0].endswith("events of its process were lost")


def test_declaration_that_the_trace_refutes_is_reported():
    node = Fusion("/a", "/b")
    node.get(1000, "/a")
    node.get(2000, "/b", "/out")
    node.get(3000, "/b", "/out")
    flow = node.flow(LinkRule.EXACT_TIME)
    assert (0, 1, 1, True) not in links(flow)
    assert any("had no new message for every publication" in remark for remark in flow.uncertain)


def test_publications_of_other_callbacks_are_counted():
    node = Fusion("/a", "/b")
    timer = node.node.timer(100)
    node.get(1000, "/a")
    with node.thread.at(2000).running(timer):
        node.thread.publish(node.outputs["/out"])
    flow = node.flow(LinkRule.EXACT_TIME)
    assert flow.uncertain[0].endswith("1 publication outside the callbacks of its inputs: without these links")


def test_synchronizer_is_inferred_from_its_callbacks():
    node = Fusion("/a", "/b")
    node.get(1000, "/a")
    node.get(2000, "/b", "/out")
    flow = node.flow()
    assert links(flow) == [(0, 0, 1, False), (1, 0, 1, False)]
    assert flow.uses["rule"].to_list() == ["synchronizer"] * 2
    assert flow.uncertain[0].startswith("/fusion → /out looks like a synchronizer of /a, /b: ≈: ")


def test_filters_that_publish_on_their_own_are_no_synchronizer():
    node = Fusion("/a", "/b")
    node.get(1000, "/a", "/out")
    node.get(2000, "/b", "/out")
    flow = node.flow()
    assert links(flow) == [(0, 0, 1, True), (1, 1, 1, True)]
    assert flow.uncertain == ()


@pytest.mark.parametrize("listener", ["/fusion", "/transform_listener_impl_7f"])
def test_lookup_is_linked_with_the_newest_transform(listener):
    """With a listener in the node, and with one that made a node and a thread for itself."""
    node = Fusion(outputs=("/out",))
    owner = node.node if listener == "/fusion" else node.process.node(listener)
    node.inputs["/tf"] = owner.subscription("/tf", symbol="tf2_ros::TransformListener")
    timer = node.node.timer(100)
    own = node.process.thread(2)
    for at in (1000, 2000, 4000):
        node.get(at, "/tf", thread=own)
    with node.thread.at(3000).running(timer):
        node.thread.publish(node.outputs["/out"])
    flow = node.flow(LinkRule.TRANSFORM, ("/tf",))
    assert links(flow) == [(1, 0, 2, False)]
    assert "no event names the transform that was used" in flow.uncertain[0]


def test_transform_that_releases_a_waiting_message_is_certain():
    node = Fusion("/a", "/tf")
    node.get(1000, "/a")
    node.get(2000, "/tf", "/out")
    flow = node.flow(LinkRule.TRANSFORM)
    assert links(flow) == [(0, 0, 1, True), (1, 0, 1, True)]
    assert flow.uncertain == ()
