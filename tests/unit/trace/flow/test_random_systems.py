"""Invariants of random systems on any threads."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import permutations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ldos.base.ros2 import PathSpec, Ros2
from pytest_ldos.trace.execution.columns import times_of
from pytest_ldos.trace.execution.threads import shift_clocks
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.critical import SegmentKind, break_down
from pytest_ldos.trace.flow.lineage import Kind, LineageIndex, find_path
from pytest_ldos.trace.flow.summary import executor_states
from tests.builders.ros2 import Entity, Message, Recording, Thread

TOPICS = ("/0", "/1", "/2", "/3")
HOSTS = ("arm", "base")
PERIOD_NS = 700
SLOTS = 2


@dataclass
class Player:
    """Subscribes to all topics, publishes on one; two threads run its callbacks."""

    threads: list[Thread]
    publisher: Entity
    subscriptions: list[Entity]
    timer: Entity
    service: Entity
    waiting: list[list[tuple[int, Message]]] = field(default_factory=lambda: [[] for _ in TOPICS])


ACTIONS = ("receive", "receive", "receive", "tick", "serve", "poll", "wait", "publish", "nest")

steps = st.lists(
    st.tuples(
        st.sampled_from(ACTIONS),
        st.integers(0, 2 * len(TOPICS) - 1),  # the thread
        st.integers(0, len(TOPICS) - 1),  # an input
        st.integers(0, 400),  # how long
        st.integers(0, 2),  # publications
    ),
    min_size=10,
    max_size=60,
)
WAYS = [*permutations(TOPICS, 2), *((topic, topic) for topic in TOPICS)]
some_ways = st.lists(st.sampled_from(WAYS), min_size=4, max_size=4, unique=True)
rules = st.lists(st.sampled_from([None, Ros2.LINK_PERIODIC_ASYNC, Ros2.LINK_PARTIAL_SYNC]), min_size=4, max_size=4)


class System:
    """Plays steps; messages arrive with a delay, and are taken in order."""

    def __init__(self, links, *, skew_ns=0) -> None:
        self.recording = Recording(skew_ns={"base": skew_ns})
        self.nodes: list[Player] = []
        for number, (topic, link) in enumerate(zip(TOPICS, links, strict=True)):
            process = self.recording.process(number + 1, host=HOSTS[number % 2])
            node = process.node(f"/node{number}")
            subscriptions = [node.subscription(each) for each in TOPICS]
            publisher = node.publisher(topic)
            if link:
                node.link(link, subscriptions[:2], [publisher])
            threads = [process.thread(10 * number + own) for own in (1, 2)]
            timer, service = node.timer(PERIOD_NS), node.service(f"/serve{number}")
            self.nodes.append(Player(threads, publisher, subscriptions, timer, service))
        for player in self.nodes:
            for thread in player.threads:
                thread.at(self.recording.moment + 100)

    def play(self, played):
        for action, who, source, lasts, publications in played:
            node = self.nodes[who // 2]
            getattr(self, action)(node, node.threads[who % 2], source, lasts, publications)
        return self.recording.model()

    def receive(self, node, thread, source, lasts, publications):
        if not node.waiting[source]:
            return
        arrives, message = node.waiting[source].pop(0)
        thread.at(max(thread.now, arrives))
        with thread.receiving(node.subscriptions[source], message):
            self.work(node, thread, lasts, publications)

    def tick(self, node, thread, source, lasts, publications):
        with thread.running(node.timer):
            self.work(node, thread, lasts, publications)

    def serve(self, node, thread, source, lasts, publications):
        with thread.running(node.service):
            self.work(node, thread, lasts, publications)

    def poll(self, node, thread, source, lasts, publications):
        """A callback that publishes, polls all messages, and publishes again."""
        with thread.running(node.service if lasts % 2 else node.timer):
            self.work(node, thread, lasts // 2, publications)
            for arrives, message in node.waiting[source]:
                thread.at(max(thread.now, arrives)).take(node.subscriptions[source], message)
            node.waiting[source].clear()
            self.work(node, thread, lasts // 2, publications)

    def nest(self, node, thread, source, lasts, publications):
        """A callback that spins."""
        with thread.running(node.timer):
            self.receive(node, thread, source, lasts, publications)
            self.work(node, thread, lasts, publications)

    def wait(self, node, thread, source, lasts, publications):
        thread.wait(thread.now + lasts + 1)

    def publish(self, node, thread, source, lasts, publications):
        self.work(node, thread.spend(lasts), 0, publications)

    def work(self, node, thread, lasts, publications):
        for number in range(publications):
            thread.spend(lasts // 3)
            message = thread.publish(node.publisher)
            for other in self.nodes:
                other.waiting[TOPICS.index(node.publisher.topic)].append((thread.now + 20 * number, message))
        thread.spend(lasts)


def check_passages(model, ways=WAYS, *, agree):
    flow = build_flow(model)
    found = 0
    for via in ways:
        instances = find_path(flow, PathSpec(name="path", via=via))
        parts = break_down(flow, instances).partition_by("passage", as_dict=True)
        for row, whole in enumerate(instances.table.iter_rows(named=True)):
            own = parts[row,]
            begins, ends, durations = (own[name].to_list() for name in ("begin_ns", "end_ns", "duration_ns"))
            assert (begins[0], ends[-1]) == (whole["begin_ns"], whole["end_ns"])
            assert begins[1:] == ends[:-1]
            assert sum(durations) == whole["latency_ns"]
            assert not agree or min(durations) > 0
            found += 1
    return found


@settings(max_examples=20, deadline=None)
@given(rules, steps, some_ways)
def test_segments_are_contiguous_and_sum_to_the_latency(links, played, ways):
    check_passages(System(links).play(played), ways, agree=True)


@pytest.mark.acceptance
@settings(max_examples=10, deadline=None)
@given(rules, steps, some_ways, st.integers(-1000, 1000))
def test_segments_sum_with_wrong_clocks_and_are_positive_once_corrected(links, played, ways, skew_ns):
    model = System(links, skew_ns=skew_ns).play(played)
    check_passages(model, ways, agree=False)
    check_passages(shift_clocks(model, {"base": -skew_ns}), ways, agree=True)


@settings(max_examples=15, deadline=None)
@given(rules, steps)
def test_messages_are_used_after_their_take(links, played):
    model = System(links).play(played)
    flow = build_flow(model)
    taken = model.takes.select("subscription", take="id", taken_ns="time_ns")
    sent = model.publications.select("publisher", publication="id", sent_ns="time_ns")
    uses = flow.uses.join(taken, on="take").join(sent, on="publication")
    assert (uses["taken_ns"] < uses["sent_ns"]).all()
    process = lambda table, end: dict(table.select("id", "process").iter_rows())[end]  # noqa: E731
    for subscription, publisher in uses.select("subscription", "publisher").iter_rows():
        assert process(model.subscriptions, subscription) == process(model.publishers, publisher)
    assert (flow.transport["latency_ns"] > 0).all()
    assert len(flow.transport) == len(model.takes)


@settings(max_examples=15, deadline=None)
@given(rules, steps)
def test_forward_and_backward_lineages_agree(links, played):
    flow = build_flow(System(links).play(played))
    index = LineageIndex(flow)
    publications = range(min(len(flow.model.publications), 12))
    forward = {one: index.forward(Kind.PUBLICATION, one) for one in publications}
    for other in publications:
        before = {
            each.id for each in index.backward(Kind.PUBLICATION, other).instances if each.kind is Kind.PUBLICATION
        }
        for one in publications:
            after = {each.id for each in forward[one].instances if each.kind is Kind.PUBLICATION}
            assert (one in before) == (other in after)


@settings(max_examples=15, deadline=None)
@given(rules, steps)
def test_states_of_a_thread_are_contiguous(links, played):
    model = System(links).play(played)
    states = executor_states(model)
    for (thread,), spans in states.group_by("thread"):
        assert spans["begin_ns"].to_list()[1:] == spans["end_ns"].to_list()[:-1]
        assert (spans["end_ns"] > spans["begin_ns"]).all()
        runs = model.callback_runs.filter(pl.col("thread") == thread)
        executing = spans.filter(pl.col("state") == "executing")
        busy = (executing["end_ns"] - executing["begin_ns"]).sum()
        outermost = runs.filter(pl.col("parent").is_null())
        assert busy == (outermost["end_ns"] - outermost["start_ns"]).sum()


def test_random_systems_cover_all_kinds_of_segments():
    """Guards against vacuous tests above."""
    kinds, passages = set(), 0
    for seed in range(3):
        played = [
            (ACTIONS[(seed + 5 * at) % len(ACTIONS)], (3 * at + seed) % 8, (at // 2 + seed) % 4, 37 * at % 400, at % 3)
            for at in range(60)
        ]
        links = [Ros2.LINK_PERIODIC_ASYNC, Ros2.LINK_PARTIAL_SYNC] * 2
        model = System(links).play(played)
        passages += check_passages(model, agree=True)
        flow = build_flow(model)
        for via in permutations(TOPICS, 2):
            kinds |= set(break_down(flow, find_path(flow, PathSpec(name="path", via=via)))["kind"])
        assert times_of(model.callback_runs, "end_ns").min() > 0
    assert passages > 30
    of_goals_or_the_kernel = {SegmentKind.CPU_WAIT, SegmentKind.MOTION, SegmentKind.PLANNING_STAGE}
    assert kinds >= {kind.value for kind in SegmentKind if kind not in of_goals_or_the_kernel}
