"""Nodes with one timer each; at every tick, a node's publishers publish."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pytest_ldos.instruments.cpu_cost.traffic import PATIENCE_NS, TYPE, Plan, Traffic
from pytest_ldos.robot.dds.messages import Message, default
from pytest_ldos.robot.dds.node import Context, Node, Publisher, Timer


@dataclass
class _Member:
    """A node with its publishers and its number of ticks left."""

    node: Node
    publishers: list[Publisher] = field(default_factory=list)
    ticks_left: int = 0
    timer: Timer | None = None


class Nodes:
    """See `Traffic`.

    Args:
        nodes: number of nodes over which publishers and subscriptions are spread.
        own_participants: True if each node has its own participant, and its own executor on a thread.
        publishes: False for timers only.
    """

    def __init__(self, plan: Plan, *, nodes: int, own_participants: bool = False, publishes: bool = True) -> None:
        self._plan = plan
        self._message = default(TYPE, data="X" * plan.size_bytes)
        self._expected = plan.deliveries if publishes else 0
        count = nodes if own_participants else 1
        self._contexts = [Context(plan.domain, is_first=not number) for number in range(count)]
        self._members = [
            _Member(Node(self._contexts[number % count], f"cost_node_{number}")) for number in range(nodes)
        ]
        if publishes:
            for number in range(plan.topics):
                self._add_topic(number)
        for member in self._members:
            member.timer = member.node.create_timer(plan.period_ns, self._ticker(member))
        self._published = self._received = self._ticks_left = 0
        self._end_ns = 0
        self._lock = threading.Lock()

    def _add_topic(self, number: int) -> None:
        topic, members = self._plan.topic(number), self._members
        owner = members[number % len(members)]
        owner.publishers.append(owner.node.create_publisher(TYPE, topic))
        for place in range(self._plan.subscribers):
            members[place % len(members)].node.create_subscription(TYPE, topic, self._receive)

    def _ticker(self, member: _Member) -> Callable[[], None]:
        def tick() -> None:
            if not member.ticks_left:
                return
            for publisher in member.publishers:
                publisher.publish(self._message)
            member.ticks_left -= 1
            with self._lock:
                self._published += len(member.publishers)
                self._ticks_left -= 1

        return tick

    def _receive(self, message: Message) -> None:
        with self._lock:
            self._received += 1

    def is_matched(self) -> bool:
        publishers = [publisher for member in self._members for publisher in member.publishers]
        return all(publisher.matched() >= self._plan.subscribers for publisher in publishers)

    def exchange(self) -> tuple[int, int]:
        self._published = self._received = 0
        self._ticks_left = self._plan.ticks * len(self._members)
        self._end_ns = time.monotonic_ns() + self._plan.ticks * self._plan.period_ns + PATIENCE_NS
        for member in self._members:
            assert member.timer is not None
            member.ticks_left = self._plan.ticks
            member.timer.restart()
        others = [threading.Thread(target=self._spin, args=(each,)) for each in self._contexts[1:]]
        for thread in others:
            thread.start()
        self._spin(self._contexts[0])
        for thread in others:
            thread.join()
        return self._published, self._received

    def _spin(self, context: Context) -> None:
        """Spins until the exchange is done; timer ticks wake the executor, so that the time limit is not missed."""
        while not self._is_done():
            context.executor.spin_once()
        for other in self._contexts:
            other.executor.wake()

    def _is_done(self) -> bool:
        is_complete = self._ticks_left == 0 and self._received >= self._expected
        return is_complete or time.monotonic_ns() >= self._end_ns


def no_publishing(plan: Plan) -> Traffic:
    return Nodes(plan, nodes=plan.nodes, publishes=False)


def one_node(plan: Plan) -> Traffic:
    return Nodes(plan, nodes=1)


def many_nodes(plan: Plan) -> Traffic:
    return Nodes(plan, nodes=plan.nodes)


def many_participants(plan: Plan) -> Traffic:
    return Nodes(plan, nodes=plan.nodes, own_participants=True)
