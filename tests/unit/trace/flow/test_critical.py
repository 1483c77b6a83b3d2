"""Critical paths: segments of known durations."""

from __future__ import annotations

import pytest

from pytest_ldos.base.ros2 import Marker, PathSpec, Ros2
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.critical import break_down
from pytest_ldos.trace.flow.lineage import find_path
from tests.builders.ros2 import Message, Recording

CALL = 2
"""Time from a publish call to the middleware; a take precedes its callback by 3 ns."""


def segments(recording, *via, passage=0):
    """(kind, subject, duration) of each segment; asserts that the segments are contiguous."""
    flow = build_flow(recording.model())
    found = find_path(flow, PathSpec(name="path", via=via))
    table = break_down(flow, found)
    for row, whole in enumerate(found.table.iter_rows(named=True)):
        parts = table.filter(table["passage"] == row)
        ends = parts["end_ns"].to_list()
        assert parts["begin_ns"].to_list() == [whole["begin_ns"], *ends[:-1]]
        assert ends[-1] == whole["end_ns"]
        assert parts["duration_ns"].sum() == whole["latency_ns"]
        assert parts["position"].to_list() == list(range(len(parts)))
    return table.filter(table["passage"] == passage).select("kind", "subject", "duration_ns").rows()


class System:
    """Nodes, each a process with one thread."""

    def __init__(self) -> None:
        self.recording = Recording()
        self.pid = 0

    def node(self, name, *, publishes=(), subscribes=(), period_ns=None):
        self.pid += 1
        process = self.recording.process(self.pid)
        node = process.node(name)
        made = [process.thread(), *map(node.publisher, publishes), *map(node.subscription, subscribes)]
        if period_ns:
            made.append(node.timer(period_ns))
        return node, *made


@pytest.mark.parametrize(
    ("waited_us", "arrived_us"),
    [
        pytest.param(
            2, 900, id="the wait returned at once: the message was there when the timer began or came while it ran"
        ),
        pytest.param(400, 1900, id="the wait blocked: the message came at its end"),
    ],
)
def test_executor_wait_gives_the_arrival_time(waited_us, arrived_us):
    """Sent at 1000 µs, while a timer's callback runs from 900 to 1490; the executor waits from 1500 on."""
    us = 1000
    system = System()
    _, talker, out = system.node("/talker", publishes=["/in"])
    node, thread, relayed, subscription = system.node("/relay", publishes=["/out"], subscribes=["/in"])
    timer = node.timer(5000 * us)
    thread.at(100 * us).wait(890 * us)
    with thread.at(900 * us).running(timer):
        thread.at(1490 * us)
    message = talker.at(1000 * us).publish(out)
    woken = (1500 + waited_us) * us
    thread.at(1500 * us).wait(woken)
    thread.at(woken + 10).execute(subscription)
    with thread.at(woken + 20).receiving(subscription, message):
        thread.at(2500 * us).publish(relayed)
    arrived = max(arrived_us * us, 1000 * us + CALL)
    expected = [
        ("publish call", "/in", CALL),
        ("transport", "/in → /relay", arrived - 1000 * us - CALL),
        ("executor wait", "/relay", woken + 23 - arrived),
        ("callback run", "/relay: /in", 2500 * us - woken - 23),
        ("publish call", "/out", CALL),
    ]
    assert segments(system.recording, "/in", "/out") == [each for each in expected if each[2]]


def test_message_in_transit_while_the_executor_waits():
    system = System()
    _, talker, out = system.node("/talker", publishes=["/in"])
    _, thread, relayed, subscription = system.node("/relay", publishes=["/out"], subscribes=["/in"])
    message = talker.at(1000).publish(out)
    thread.at(500).wait(1400)
    with thread.at(1450).receiving(subscription, message):
        thread.at(1500).publish(relayed)
    assert segments(system.recording, "/in", "/out") == [
        ("publish call", "/in", CALL),
        ("transport", "/in → /relay", 1400 - 1002),
        ("executor wait", "/relay", 53),
        ("callback run", "/relay: /in", 1500 - 1453),
        ("publish call", "/out", CALL),
    ]


def test_another_thread_of_the_executor_waited():
    """Threads of an executor wait one at a time; the woken thread is not the one that takes."""
    system = System()
    _, talker, out = system.node("/talker", publishes=["/in"])
    node, one, relayed, subscription = system.node("/relay", publishes=["/out"], subscribes=["/in"])
    two = node.process.thread(99)
    with two.at(100).receiving(subscription, talker.at(50).publish(out)):
        pass
    message = talker.at(1000).publish(out)
    two.at(900).wait(1400)
    with one.at(1500).receiving(subscription, message):
        one.publish(relayed)
    found = segments(system.recording, "/in", "/out")
    assert found[1:3] == [("transport", "/in → /relay", 1400 - 1002), ("executor wait", "/relay", 1503 - 1400)]


def test_without_executor_events_all_time_is_transport():
    system = System()
    _, talker, out = system.node("/talker", publishes=["/in"])
    _, thread, relayed, subscription = system.node("/relay", publishes=["/out"], subscribes=["/in"])
    message = talker.at(1000).publish(out)
    with thread.at(1500).receiving(subscription, message):
        thread.publish(relayed)
    assert [kind for kind, _, _ in segments(system.recording, "/in", "/out")] == [
        "publish call", "transport", "executor wait", "callback run", "publish call",
    ]  # fmt: skip


def test_callback_keeps_its_executor_busy_without_executor_events():
    """The executor does not wait between two callbacks that are ready together. The transit time of the second's
    message is unknown while the executor is busy.
    """
    system = System()
    _, talker, out = system.node("/talker", publishes=["/in"])
    node, thread, relayed, subscription = system.node("/relay", publishes=["/out"], subscribes=["/in"])
    timer = node.timer(5000)
    thread.at(800).wait(850)
    with thread.at(900).running(timer):
        thread.at(1490)
    with thread.at(1600).receiving(subscription, talker.at(1000).publish(out)):
        thread.publish(relayed)
    expected = ("executor wait", "/relay", 1603 - 1002)
    assert segments(system.recording, "/in", "/out")[1] == expected
    system.recording.rows = [row for row in system.recording.rows if "executor" not in row.fields["event"]]
    assert segments(system.recording, "/in", "/out")[1] == expected


def test_a_callback_on_one_thread_keeps_no_other_busy():
    system = System()
    _, talker, out = system.node("/talker", publishes=["/in"])
    node, thread, relayed, subscription = system.node("/relay", publishes=["/out"], subscribes=["/in"])
    timer, other = node.timer(5000), node.process.thread(99)
    for at, each in ((100, thread), (200, other), (900, other)):
        with each.at(at).running(timer):
            each.spend(50 if at < 900 else 500)
    with thread.at(1600).receiving(subscription, talker.at(1000).publish(out)):
        thread.publish(relayed)
    assert segments(system.recording, "/in", "/out")[1] == ("transport", "/in → /relay", 1600 - 1002)


def cache(system):
    """Stores /in, and publishes the latest value on /out every 10 µs; the third run is 500 ns late."""
    _, talker, out = system.node("/talker", publishes=["/in"])
    node, thread, cached, subscription, timer = system.node(
        "/cache", publishes=["/out"], subscribes=["/in"], period_ns=10_000
    )
    node.link(Ros2.LINK_PERIODIC_ASYNC, [subscription], [cached])
    for at in (10_000, 20_000):
        with thread.at(at).running(timer):
            thread.publish(cached)
    message = talker.at(24_000).publish(out)
    with thread.at(25_000).receiving(subscription, message):
        thread.at(25_100)
    with thread.at(30_500).running(timer):
        thread.at(30_600).publish(cached)
    return thread, timer, cached


def test_stored_message_waits_for_the_timer():
    system = System()
    cache(system)
    assert segments(system.recording, "/in", "/out")[3:] == [
        ("callback run", "/cache: /in", 25_100 - 25_003),
        ("timer wait", "/cache: timer of 0.01 ms", 30_000 - 25_100),
        ("executor wait", "/cache: timer of 0.01 ms", 500),
        ("callback run", "/cache: timer of 0.01 ms", 100),
        ("publish call", "/out", CALL),
    ]


def test_timer_due_before_its_input_was_stored():
    """The executor was busy storing the input: all waiting is executor time."""
    system = System()
    _, talker, out = system.node("/talker", publishes=["/in"])
    node, thread, cached, subscription, timer = system.node(
        "/cache", publishes=["/out"], subscribes=["/in"], period_ns=10_000
    )
    node.link(Ros2.LINK_PERIODIC_ASYNC, [subscription], [cached])
    for at in (10_000, 20_000):
        with thread.at(at).running(timer):
            pass
    with thread.at(29_000).receiving(subscription, talker.at(28_000).publish(out)):
        thread.at(31_000)
    with thread.at(31_500).running(timer):
        thread.publish(cached)
    assert segments(system.recording, "/in", "/out")[3:5] == [
        ("callback run", "/cache: /in", 31_000 - 29_003),
        ("executor wait", "/cache: timer of 0.01 ms", 499 + 1),
    ]


@pytest.mark.parametrize("late_ns", [100, 4_000, 6_000, 9_000])
def test_late_timer_run_does_not_shift_the_grid(late_ns):
    """Even if it is late by more than half of its period."""
    system = System()
    node, thread, cached, timer = system.node("/cache", publishes=["/out"], period_ns=10_000)
    _, talker, out = system.node("/talker", publishes=["/in"])
    subscription = node.subscription("/in")
    node.link(Ros2.LINK_PERIODIC_ASYNC, [subscription], [cached])
    for number in range(1, 21):
        late = late_ns if number == 10 else 5 * (number % 3)
        message = talker.at(10_000 * number - 900).publish(out) if number in {5, 10, 11} else None
        if message:
            with thread.at(10_000 * number - 500).receiving(subscription, message):
                pass
        with thread.at(10_000 * number + late).running(timer):
            if message:
                thread.publish(cached)
    for passage, number in enumerate((5, 10, 11)):
        late = late_ns if number == 10 else 5 * (number % 3)
        found = {
            kind: duration
            for kind, subject, duration in segments(system.recording, "/in", "/out", passage=passage)
            if "timer of" in subject
        }
        assert found["timer wait"] == 496
        assert found.get("executor wait", 0) == late


def ticking(system, ticks):
    """A cache whose timer of 1 µs runs at the given times; `/in` is stored before the last."""
    node, thread, cached, timer = system.node("/cache", publishes=["/out"], period_ns=1000)
    _, talker, out = system.node("/talker", publishes=["/in"])
    subscription, service = node.subscription("/in"), node.service("/serve")
    node.link(Ros2.LINK_PERIODIC_ASYNC, [subscription], [cached])
    for at in ticks[:-1]:
        with thread.at(at).running(timer):
            pass
    with thread.at(ticks[-2] + 500).receiving(subscription, talker.at(ticks[-2] + 100).publish(out)):
        pass
    thread.at(ticks[-1])

    def last():
        with thread.at(ticks[-1]).running(timer):
            thread.publish(cached)
        return segments(system.recording, "/in", "/out")[4:6]

    return thread, service, last


def test_timer_delayed_by_several_periods():
    """The executor was busy from 14900 to 19900; the timer was due at 15000, and skipped the missed periods."""
    system = System()
    thread, service, last = ticking(system, [*range(10_000, 14_001, 1000), 19_950])
    with thread.at(14_900).running(service):
        thread.at(19_900)
    assert last() == [
        ("timer wait", "/cache: timer of 0.001 ms", 15_000 - 14_505 + 1),
        ("executor wait", "/cache: timer of 0.001 ms", 4_950),
    ]


def test_stopped_timer():
    """The executor was idle: the timer was not due."""
    system = System()
    _, _, last = ticking(system, [*range(10_000, 14_001, 1000), 19_950])
    assert last() == [
        ("timer wait", "/cache: timer of 0.001 ms", 19_000 - 14_505 + 1),
        ("executor wait", "/cache: timer of 0.001 ms", 950),
    ]


def test_a_message_within_a_process():
    system = System()
    node, thread, raw, out = system.node("/app", publishes=["/in", "/out"])
    subscription = node.subscription("/in", intra=True)
    timer = node.timer(100_000)
    with thread.at(1000).running(timer):
        message = thread.publish_intra(raw, {subscription: 0})
        thread.at(1400)
    thread.at(1410).wait(1450)
    with thread.at(1500).receiving(subscription, message):
        thread.at(1800).publish_intra(out, {})
    assert segments(system.recording, "/in", "/out") == [
        ("executor wait", "/app", 1501 - 1001),
        ("callback run", "/app: /in", 1800 - 1501),
    ]


def fusion(system):
    """/fusion publishes /out when it has a new /a and a new /b."""
    node, thread, out, a, b = system.node("/fusion", publishes=["/out"], subscribes=["/a", "/b"])
    node.link(Ros2.LINK_PARTIAL_SYNC, [a, b], [out])
    return thread, out, a, b


def test_wait_for_another_input_follows_its_path():
    """/a arrives at 1100. /b comes through a relay from a timer that is due at 20000."""
    system = System()
    thread, out, a, b = fusion(system)
    _, source_a, to_a = system.node("/source_a", publishes=["/a"])
    _, source, raw, timer = system.node("/source_b", publishes=["/raw"], period_ns=10_000)
    _, relay, to_b, of_raw = system.node("/relay", publishes=["/b"], subscribes=["/raw"])
    with source.at(10_000).running(timer):
        pass
    message = source_a.at(10_500).publish(to_a)
    with thread.at(11_000).receiving(a, message):
        thread.at(11_100)
    with source.at(20_300).running(timer):
        raw_message = source.at(20_700).publish(raw)
    relay.at(20_100).wait(21_000)
    with relay.at(21_050).receiving(of_raw, raw_message):
        b_message = relay.at(21_500).publish(to_b)
    thread.at(21_000).wait(22_000)
    with thread.at(22_100).receiving(b, b_message):
        thread.at(22_500).publish(out)
    found = segments(system.recording, "/a", "/out")
    assert found[2:] == [
        ("executor wait", "/fusion", 3),
        ("callback run", "/fusion: /a", 11_100 - 11_003),
        ("timer wait", "/source_b: timer of 0.01 ms", 20_000 - 11_100),
        ("executor wait", "/source_b: timer of 0.01 ms", 300),
        ("callback run", "/source_b: timer of 0.01 ms", 400),
        ("publish call", "/raw", CALL),
        ("transport", "/raw → /relay", 21_000 - 20_702),
        ("executor wait", "/relay", 53),
        ("callback run", "/relay: /raw", 21_500 - 21_053),
        ("publish call", "/b", CALL),
        ("transport", "/b → /fusion", 22_000 - 21_502),
        ("executor wait", "/fusion", 103),
        ("callback run", "/fusion: /b", 22_500 - 22_103),
        ("publish call", "/out", CALL),
    ]


def test_other_inputs_path_counts_only_during_the_wait():
    """/b was sent long before /a came."""
    system = System()
    thread, out, a, b = fusion(system)
    _, source_a, to_a = system.node("/source_a", publishes=["/a"])
    _, source_b, to_b, timer = system.node("/source_b", publishes=["/b"], period_ns=1_000_000)
    with source_b.at(100_000).running(timer):
        b_message = source_b.at(110_000).publish(to_b)
    with thread.at(300_000).receiving(a, source_a.at(200_000).publish(to_a)):
        thread.at(320_000)
    with thread.at(400_000).receiving(b, b_message):
        thread.publish(out)
    assert segments(system.recording, "/a", "/out")[3:6] == [
        ("callback run", "/fusion: /a", 320_000 - 300_003),
        ("transport", "/b → /fusion", 400_000 - 320_001 + 1),
        ("executor wait", "/fusion", 3),
    ]


def test_unexplained_time_is_outside_of_callbacks():
    """The other input's origin and sender are not in the trace."""
    system = System()
    thread, out, a, b = fusion(system)
    _, source_a, to_a = system.node("/source_a", publishes=["/a"])
    with thread.at(3000).receiving(a, source_a.at(2000).publish(to_a)):
        thread.at(3200)
    with thread.at(4000).receiving(b, Message(7)):
        thread.publish(out)
    assert segments(system.recording, "/a", "/out")[3:] == [
        ("callback run", "/fusion: /a", 3200 - 3003),
        ("outside callbacks", "/b → /fusion", 4000 - 3200),
        ("executor wait", "/fusion", 3),
        ("callback run", "/fusion: /b", 1),
        ("publish call", "/out", CALL),
    ]


def test_input_published_outside_of_callbacks():
    system = System()
    thread, out, a, b = fusion(system)
    _, source, to_a, to_b = system.node("/source", publishes=["/a", "/b"])
    with thread.at(3000).receiving(a, source.at(2000).publish(to_a)):
        thread.at(3200)
    message = source.at(3500).publish(to_b)
    with thread.at(4000).receiving(b, message):
        thread.publish(out)
    assert segments(system.recording, "/a", "/out")[4:8] == [
        ("outside callbacks", "/source", 300),
        ("publish call", "/b", CALL),
        ("transport", "/b → /fusion", 4000 - 3502),
        ("executor wait", "/fusion", 3),
    ]


def test_publication_outside_of_callbacks_from_a_stored_input():
    system = System()
    _, talker, out = system.node("/talker", publishes=["/in"])
    node, thread, cached, subscription = system.node("/cache", publishes=["/out"], subscribes=["/in"])
    node.link(Ros2.LINK_PERIODIC_ASYNC, [subscription], [cached])
    with thread.at(2000).receiving(subscription, talker.at(1000).publish(out)):
        thread.at(2100)
    thread.at(2500).publish(cached)
    assert segments(system.recording, "/in", "/out")[3:] == [
        ("outside callbacks", "/cache: /in", 2500 - 2003),
        ("publish call", "/out", CALL),
    ]


def test_polled_message():
    system = System()
    _, talker, out = system.node("/talker", publishes=["/in"])
    _, thread, polled, subscription, timer = system.node(
        "/poller", publishes=["/out"], subscribes=["/in"], period_ns=5000
    )
    message = talker.at(1000).publish(out)
    with thread.at(2000).running(timer):
        thread.at(2100).take(subscription, message)
        thread.at(2400).publish(polled)
    assert segments(system.recording, "/in", "/out") == [
        ("publish call", "/in", CALL),
        ("transport", "/in → /poller", 2100 - 1002),
        ("callback run", "/poller: timer of 0.005 ms", 300),
        ("publish call", "/out", CALL),
    ]


def test_polled_answer_is_not_followed():
    """The callback polls a message that it caused itself: following it would loop forever."""
    system = System()
    _, talker, out = system.node("/talker", publishes=["/in"])
    node, thread, asks, answers, stored, answer = system.node(
        "/server", publishes=["/question", "/out"], subscribes=["/in", "/answer"]
    )
    node.link(Ros2.LINK_PERIODIC_ASYNC, [stored], [answers])
    service = node.service("/serve")
    _, other, to_server, question = system.node("/oracle", publishes=["/answer"], subscribes=["/question"])
    with thread.at(2000).receiving(stored, talker.at(1000).publish(out)):
        thread.at(2100)
    with thread.at(3000).running(service):
        asked = thread.publish(asks)
        with other.at(3100).receiving(question, asked):
            answered = other.publish(to_server)
        thread.at(3200).take(answer, answered)
        thread.at(3300).publish(answers)
    assert segments(system.recording, "/in", "/out")[3:] == [
        ("callback run", "/server: /in", 97),
        ("outside callbacks", "/server: /serve", 3000 - 2100),
        ("callback run", "/server: /serve", 300),
        ("publish call", "/out", CALL),
    ]


def test_disagreeing_clocks_make_a_segment_negative_and_keep_the_sum():
    """The clock of /b's host is 600 ns ahead: its message seems to be sent after the callback that it triggered, at 4003."""
    recording = Recording(skew_ns={"base": 600})
    system = System()
    system.recording = recording
    thread, out, a, b = fusion(system)
    _, source_a, to_a = system.node("/source_a", publishes=["/a"])
    process = recording.process(50, host="base")
    node, source_b = process.node("/source_b"), process.thread()
    timer, to_b = node.timer(1_000_000), node.publisher("/b")
    with thread.at(3000).receiving(a, source_a.at(2000).publish(to_a)):
        thread.at(3200)
    with source_b.at(3300).running(timer):
        message = source_b.at(3500).publish(to_b)
    with thread.at(4000).receiving(b, message):
        thread.publish(out)
    found = segments(recording, "/a", "/out")
    assert [duration for kind, _, duration in found if kind == "transport"] == [3000 - 2002, 4000 - 4003]


def test_phases_are_segments():
    recording = Recording()
    for at, phase in ((100, "goal_sent"), (130, "planning"), (190, "executing")):
        recording.emit(Marker.PHASE, at, goal_id="one", phase=phase)
    found = [(subject, duration) for _, subject, duration in segments(recording, "goal_sent", "planning", "executing")]
    assert found == [("from goal_sent to planning", 30), ("from planning to executing", 60)]


def test_no_passage_has_no_segments():
    system = System()
    system.node("/talker", publishes=["/in"])
    assert segments(system.recording, "/in", "/out") == []
