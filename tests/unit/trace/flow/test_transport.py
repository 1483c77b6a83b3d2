"""Links from publications to receptions."""

from __future__ import annotations

import pytest

from pytest_ldos.base.ros2 import Ros2
from pytest_ldos.trace.flow.build import build_flow
from tests.builders.ros2 import Message, Recording


def links(recording, **options) -> list[tuple[int, int]]:
    """(publication, take), in the order of the takes."""
    flow = build_flow(recording.model(**options))
    assert flow.transport["take"].is_sorted()
    return flow.transport.select("publication", "take").rows()


class Net:
    """Nodes in processes of their own; each publishes and subscribes with its own thread."""

    def __init__(self) -> None:
        self.recording = Recording()
        self.pid = 0

    def publisher(self, topic, *, host="arm"):
        self.pid += 1
        process = self.recording.process(self.pid, host=host)
        return process.thread(), process.node(f"/talker{self.pid}").publisher(topic)

    def subscription(self, topic, *, host="arm"):
        self.pid += 1
        process = self.recording.process(self.pid, host=host)
        return process.thread(), process.node(f"/listener{self.pid}").subscription(topic)


def test_one_message_to_many():
    net = Net()
    thread, publisher = net.publisher("/chatter")
    listeners = [net.subscription("/chatter") for _ in range(5)]
    messages = [thread.at(1000 * (number + 1)).publish(publisher) for number in range(3)]
    for number, message in enumerate(messages):
        for index, (listener, subscription) in enumerate(listeners):
            listener.at(1000 * (number + 1) + 100 + 10 * index).take(subscription, message)
    flow = build_flow(net.recording.model())
    assert flow.transport["publication"].to_list() == [0] * 5 + [1] * 5 + [2] * 5
    assert flow.transport["latency_ns"].to_list() == [98, 108, 118, 128, 138] * 3
    assert flow.without_partner == {}


def test_several_publishers_on_one_topic():
    net = Net()
    talkers = [net.publisher("/chatter") for _ in range(3)]
    listener, subscription = net.subscription("/chatter")
    sent = [thread.at(1000 + 10 * number).publish(publisher) for number, (thread, publisher) in enumerate(talkers)]
    for number, message in enumerate(reversed(sent)):
        listener.at(2000 + 10 * number).take(subscription, message)
    assert links(net.recording) == [(2, 0), (1, 1), (0, 2)]


def test_equal_stamps_on_two_topics():
    net = Net()
    one, two = net.publisher("/one"), net.publisher("/two")
    to_two, to_one = net.subscription("/two"), net.subscription("/one")
    for at, (thread, publisher) in ((1000, one), (1010, two)):
        thread.at(at).publish(publisher, stamp_ns=77)
    for at, (thread, subscription) in ((2000, to_two), (2010, to_one)):
        thread.at(at).take(subscription, Message(77))
    assert links(net.recording) == [(1, 0), (0, 1)]


def test_equal_stamps_on_one_topic_are_linked_in_order():
    """A subscription takes messages in the order of their publication."""
    net = Net()
    talkers = [net.publisher("/chatter") for _ in range(2)]
    listeners = [net.subscription("/chatter") for _ in range(2)]
    for at, (thread, publisher) in enumerate(talkers):
        thread.at(1000 + 10 * at).publish(publisher, stamp_ns=77)
    for at in range(2):
        for number, (thread, subscription) in enumerate(listeners):
            thread.at(2000 + 100 * at + 10 * number).take(subscription, Message(77))
    assert links(net.recording) == [(0, 0), (0, 1), (1, 2), (1, 3)]


def test_equal_stamp_of_another_topic_is_no_link():
    net = Net()
    thread, publisher = net.publisher("/one")
    listener, subscription = net.subscription("/two")
    thread.at(1000).publish(publisher, stamp_ns=77)
    listener.at(2000).take(subscription, Message(77))
    flow = build_flow(net.recording.model())
    assert len(flow.transport) == 0
    assert flow.without_partner == {
        "publications on topics without an observed subscriber": 1,
        "receptions on topics without an observed publisher": 1,
    }


def test_unknown_topic_matches_any():
    """Either the publisher or the subscription is older than the trace."""
    for first, second in ((True, False), (False, True), (False, False)):
        net = Net()
        net.recording.announcing = first
        thread, publisher = net.publisher("/chatter")
        net.recording.announcing = second
        listener, subscription = net.subscription("/chatter")
        listener.at(2000).take(subscription, thread.at(1000).publish(publisher))
        assert links(net.recording) == [(0, 0)]


def test_zero_stamp_is_ignored():
    net = Net()
    thread, publisher = net.publisher("/chatter")
    listener, subscription = net.subscription("/chatter")
    thread.at(1000).publish(publisher, stamp_ns=0)
    listener.at(2000).take(subscription, Message(0))
    assert links(net.recording) == []


@pytest.mark.parametrize("unit_ns", [1000, 3])
def test_rounded_stamps(unit_ns):
    """A middleware with another time unit matches some stamps exactly by chance."""
    net = Net()
    talkers = [net.publisher("/chatter"), net.publisher("/chatter")]
    listener, subscription = net.subscription("/chatter")
    stamps = []
    for number in range(40):
        thread, publisher = talkers[number % 2]
        stamp = 1_000_000 * (number + 1) + 37 * number
        stamps.append(thread.at(1_000_000 * (number + 1)).publish(publisher, stamp_ns=stamp).stamp_ns)
    for number, stamp in enumerate(stamps):
        listener.at(1_000_000 * (number + 1) + 5000).take(subscription, Message(stamp // unit_ns * unit_ns))
    assert sum(stamp % unit_ns == 0 for stamp in stamps) > 0
    assert links(net.recording) == [(number, number) for number in range(40)]


def test_lost_publication_is_not_replaced_by_another():
    """If stamps match exactly, the nearest other message is not a substitute."""
    net = Net()
    thread, publisher = net.publisher("/chatter")
    listener, subscription = net.subscription("/chatter")
    message = thread.at(1000).publish(publisher)
    listener.at(2000).take(subscription, Message(message.stamp_ns - 300))
    listener.at(2100).take(subscription, message)
    flow = build_flow(net.recording.model())
    assert flow.transport.select("publication", "take").rows() == [(0, 1)]
    assert flow.without_partner == {"receptions whose publication is not in the trace": 1}


def test_ways_of_transport():
    recording = Recording()
    here, neighbour, there = (
        recording.process(1),
        recording.process(2),
        recording.process(1, host="base"),
    )
    sender = here.node("/sender")
    publisher = sender.publisher("/chatter")
    subscriptions = [process.node("/receiver").subscription("/chatter") for process in (here, neighbour, there)]
    within = sender.subscription("/chatter", intra=True)
    thread = here.thread().at(1000)
    close = thread.publish_intra(publisher, {within: 0})
    far = thread.publish(publisher)
    here.thread().at(1100).take_intra(within, close)
    for number, (process, subscription) in enumerate(zip((here, neighbour, there), subscriptions, strict=True)):
        process.thread().at(1200 + 100 * number).take(subscription, far)
    flow = build_flow(recording.model())
    assert flow.transport["way"].to_list() == ["intra_process", "same_process", "same_host", "between_hosts"]
    assert flow.transport["publication"].to_list() == [0, 0, 0, 0]


class Shared:
    """One process with intra-process communication: a publisher and two subscriptions."""

    def __init__(self) -> None:
        self.recording = Recording()
        self.process = self.recording.process()
        node = self.process.node("/app")
        self.publisher = node.publisher("/chatter")
        self.one, self.two = (node.subscription("/chatter", intra=True) for _ in range(2))
        self.thread = self.process.thread().at(1000)

    def publish(self, **slots):
        return self.thread.spend(10).publish_intra(
            self.publisher, {getattr(self, name): slot for name, slot in slots.items()}
        )

    def take(self, name, message):
        self.thread.spend(10).take_intra(getattr(self, name), message)


def test_within_a_process_to_several_subscriptions():
    app = Shared()
    sent = [app.publish(one=number, two=number) for number in range(3)]
    for number in range(3):
        app.take("two", sent[number])
        app.take("one", sent[number])
    assert links(app.recording) == [(0, 0), (0, 1), (1, 2), (1, 3), (2, 4), (2, 5)]
    subscriptions = app.recording.model().takes["subscription"].to_list()
    assert subscriptions == [1, 0, 1, 0, 1, 0]


def test_overwritten_slot_holds_the_newer_message():
    """A ring of two: the third message overwrites the first, which was not taken."""
    app = Shared()
    sent = [app.publish(one=number % 2) for number in range(3)]
    app.take("one", sent[1])
    app.take("one", sent[2])
    flow = build_flow(app.recording.model())
    assert flow.transport.select("publication", "take").rows() == [(1, 0), (2, 1)]
    assert flow.without_partner == {"publications no observed subscription took": 1}


def test_a_slot_is_emptied_once():
    app = Shared()
    sent = app.publish(one=0)
    app.take("one", sent)
    app.take("one", sent)
    assert links(app.recording) == [(0, 0)]


def test_a_slot_is_filled_before_it_is_emptied():
    app = Shared()
    app.take("one", Message(0, {app.one.buffer: 0}))
    app.publish(one=0)
    assert links(app.recording) == []


def test_two_threads_publish_into_one_buffer():
    app = Shared()
    other = app.process.thread(2)
    app.thread.at(1000).emit(Ros2.INTRA_PUBLISH, publisher_handle=app.publisher.handle, message=1)
    other.at(1001).emit(Ros2.INTRA_PUBLISH, publisher_handle=app.publisher.handle, message=2)
    slot = {"buffer": app.one.buffer, "size": 1, "overwritten": 0}
    other.at(1002).emit(Ros2.RING_BUFFER_ENQUEUE, index=0, **slot)
    app.thread.at(1003).emit(Ros2.RING_BUFFER_ENQUEUE, index=1, **slot)
    app.take("one", Message(0, {app.one.buffer: 0}))
    app.take("one", Message(0, {app.one.buffer: 1}))
    assert links(app.recording) == [(1, 0), (0, 1)]


def test_equal_buffers_of_two_processes():
    recording = Recording()
    for pid in (1, 2):
        process = recording.process(pid)
        node = process.node("/app")
        publisher, subscription = node.publisher("/chatter"), node.subscription("/chatter", intra=True)
        thread = process.thread().at(1000 + pid)
        message = thread.publish_intra(publisher, {subscription: 0})
        thread.at(1100 + pid).take_intra(subscription, message)
    assert links(recording) == [(0, 0), (1, 1)]


def test_losses_are_counted():
    net = Net()
    thread, publisher = net.publisher("/chatter")
    lonely, unheard = net.publisher("/unheard")
    listener, subscription = net.subscription("/chatter")
    other, deaf = net.subscription("/deaf")
    listener.at(3000).take(subscription, thread.at(1000).publish(publisher))
    thread.at(1100).publish(publisher)
    lonely.at(1200).publish(unheard)
    listener.at(3100).take(subscription, Message(5))
    other.at(3200).take(deaf, Message(6))
    assert build_flow(net.recording.model()).without_partner == {
        "publications on topics without an observed subscriber": 1,
        "publications no observed subscription took": 1,
        "receptions on topics without an observed publisher": 1,
        "receptions whose publication is not in the trace": 1,
    }


def test_no_messages_at_all():
    flow = build_flow(Recording().model())
    for table in (flow.transport, flow.triggers, flow.causes, flow.uses, flow.hops):
        assert len(table) == 0
    assert flow.without_partner == {}


def test_message_sent_both_ways_is_one_publication():
    """rclcpp delivers it within the process first, then through the middleware."""
    recording = Recording()
    process, other = recording.process(1), recording.process(2)
    node = process.node("/app")
    publisher, timer = node.publisher("/t"), node.timer(1000)
    within, outside = node.subscription("/t", intra=True), other.node("/other").subscription("/t")
    thread = process.thread()
    for number in range(3):
        at = 1000 + 10_000 * number
        with thread.at(at).running(timer):
            close = thread.at(at + 10).publish_intra(publisher, {within: number})
            far = thread.at(at + 50).publish(publisher)
        with thread.at(at + 1000).receiving(within, close):
            pass
        with other.thread().at(at + 2000).receiving(outside, far):
            pass
    flow = build_flow(recording.model())
    assert flow.model.publications["intra"].to_list() == [False] * 3
    assert flow.model.publications["intra_ns"].to_list() == [1010, 11_010, 21_010]
    links = flow.transport.sort("take").select("publication", "way", "latency_ns").rows()
    assert [row[:2] for row in links] == [
        (number, way) for number in range(3) for way in ("intra_process", "same_host")
    ]
    assert links[0][2] == 1000 + 1000 - 1010
    assert flow.without_partner == {}
