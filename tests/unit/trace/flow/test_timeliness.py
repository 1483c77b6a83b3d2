"""Timeliness of messages relative to their period."""

from __future__ import annotations

from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.timeliness import classify_receptions
from tests.builders.ros2 import Recording

MS = 1_000_000


class Topic:
    """A publisher and subscriptions in processes of their own."""

    def __init__(self, subscriptions=1) -> None:
        self.recording = Recording()
        process = self.recording.process(1)
        self.publisher, self.thread = process.node("/talker").publisher("/t"), process.thread()
        self.listeners = []
        for number in range(subscriptions):
            process = self.recording.process(2 + number)
            self.listeners.append((process.node(f"/listener{number}").subscription("/t"), process.thread()))

    def send(self, at, *latencies):
        """Sends a message; `None` stands for a missing take."""
        message = self.thread.at(at).publish(self.publisher)
        for (subscription, thread), latency in zip(self.listeners, latencies, strict=True):
            if latency is not None:
                thread.at(at + 2 + latency).take(subscription, message)

    def rows(self):
        table = classify_receptions(build_flow(self.recording.model()))
        return table.select("subscription", "period_ns", "on_time", "late", "too_late", "lost").rows()


def test_limits_are_relative_to_the_period():
    """Period 10 ms: late above 2 ms, too late above 10 ms."""
    topic = Topic()
    latencies = [1 * MS, 2 * MS, 2 * MS + 1, 10 * MS, 10 * MS + 1, None, 1 * MS]
    for number, latency in enumerate(latencies):
        topic.send(number * 10 * MS, latency)
    assert topic.rows() == [(0, 10 * MS, 3, 2, 1, 1)]


def test_slow_topics_have_absolute_limits():
    """Period 1 s: late above 5 ms, too late above 50 ms."""
    topic = Topic()
    for number, latency in enumerate([5 * MS, 5 * MS + 1, 50 * MS, 50 * MS + 1]):
        topic.send(number * 1000 * MS, latency)
    assert topic.rows() == [(0, 1000 * MS, 1, 2, 1, 0)]


def test_subscriptions_are_counted_separately():
    topic = Topic(subscriptions=2)
    for number, latencies in enumerate([(1, 1), (1, None), (1, None), (1, 1)]):
        topic.send(number * 10 * MS, *latencies)
    assert topic.rows() == [(0, 10 * MS, 4, 0, 0, 0), (1, 10 * MS, 2, 0, 0, 2)]


def test_messages_outside_a_subscriptions_life_are_not_lost():
    topic = Topic()
    for number, latency in enumerate([None, None, 1, 1, None, 1, None]):
        topic.send(number * 10 * MS, latency)
    assert topic.rows() == [(0, 10 * MS, 3, 0, 0, 1)]


def test_a_single_message_has_no_period():
    topic = Topic()
    topic.send(1000, 7 * MS)
    assert topic.rows() == [(0, None, None, None, None, 0)]


def test_messages_sent_on_events_are_not_late():
    """Bursts of three messages at irregular times, like parameter events."""
    topic = Topic()
    for burst, at in enumerate((0, 700, 1900, 2100)):
        for number in range(3):
            topic.send(at * MS + number * 20_000, 300_000 if burst < 3 else None)
    topic.send(3000 * MS, 300_000)
    assert topic.rows() == [(0, None, None, None, None, 3)]


def test_period_survives_jitter_and_a_pause():
    topic = Topic()
    for number in range(20):
        topic.send(number * 10 * MS + (number * 7919 % 5) * MS + (number > 15) * 400 * MS, 3 * MS)
    ((_, period_ns, _, late, _, _),) = topic.rows()
    assert 8 * MS <= period_ns <= 12 * MS
    assert late == 20


def test_no_messages():
    assert Topic().rows() == []


def test_ways_of_a_publisher_are_counted_separately():
    """With subscriptions in its own and in another process, a publisher sends each message twice."""
    topic = Topic()
    node = topic.thread.process.node("/inside")
    inside = node.subscription("/t", intra=True)
    for number in range(5):
        message = topic.thread.at(number * 10 * MS - 100).publish_intra(topic.publisher, {inside: number})
        topic.send(number * 10 * MS, 1)
        topic.thread.at(number * 10 * MS + 2000).take_intra(inside, message)
    assert [row[1:] for row in topic.rows()] == [(10 * MS, 5, 0, 0, 0)] * 2
