"""A process that exchanges messages on one rung of the ladder, once for each line that it reads (see `answer_lines`).

Settings (``rung``, ``match_s``, the fields of `Plan`) and answers (those of `ladder.Exchange`) are those of the ROS
workspace's ``cost_ladder``.
"""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from cyclonedds.core import WaitSet
from cyclonedds.domain import Domain, DomainParticipant

from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.host.kept import answer_lines, given_settings
from pytest_ldos.instruments.cpu_cost.ladder import Rung
from pytest_ldos.robot.dds.domain import loopback_config
from pytest_ldos.robot.dds.endpoint import DEFAULT, Message, Reader, Writer, dds_topic, default, encode, wall_clock_ns
from pytest_ldos.robot.dds.node import Context, Node, Publisher, Timer

_TYPE: Final = "std_msgs/msg/String"
_PATIENCE_NS: Final = NS_PER_S  # time to wait for messages after the last tick
_BATCH: Final = 64


@dataclass(frozen=True, kw_only=True)
class Plan:
    domain: int
    topics: int
    subscribers: int
    nodes: int
    rate_hz: float
    size_bytes: int
    ticks: int

    @property
    def period_ns(self) -> int:
        return int(NS_PER_S / self.rate_hz)

    @property
    def deliveries(self) -> int:
        return self.ticks * self.topics * self.subscribers

    @property
    def topic_names(self) -> list[str]:
        return [f"/cost_topic_{number}" for number in range(self.topics)]


class Traffic(Protocol):
    def is_matched(self) -> bool:
        """Returns True if every publisher has found all its subscribers."""

    def exchange(self) -> tuple[int, int]:
        """Publishes on all topics at every tick; returns the numbers of messages published and received in time."""


class InProcess:
    """Publishes by function calls, without middleware and threads."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._message = "X" * plan.size_bytes
        self._topics = [[self._receive] * plan.subscribers for _ in range(plan.topics)]
        self._received = 0

    def _receive(self, message: str) -> None:
        self._received += 1

    def is_matched(self) -> bool:
        return True

    def exchange(self) -> tuple[int, int]:
        self._received = 0
        due_ns = time.monotonic_ns()
        for _ in range(self._plan.ticks):
            due_ns += self._plan.period_ns
            time.sleep(max(0, due_ns - time.monotonic_ns()) / NS_PER_S)
            for subscribers in self._topics:
                for receive in subscribers:
                    receive(self._message)
        return self._plan.ticks * self._plan.topics, self._received


class DdsOnly:
    """DDS writers and readers of encoded messages on one thread, without nodes and tracepoints."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._domain = Domain(plan.domain, loopback_config())
        self._participant = DomainParticipant(plan.domain)
        self._data = encode(default(_TYPE, data="X" * plan.size_bytes))
        names = [dds_topic(name) for name in plan.topic_names]
        self._writers = [Writer(self._participant, name, _TYPE, DEFAULT) for name in names]
        self._readers = [
            Reader(self._participant, name, _TYPE, DEFAULT) for name in names for _ in range(plan.subscribers)
        ]
        self._waitset = WaitSet(self._participant)
        for reader in self._readers:
            self._waitset.attach(reader.condition)

    def is_matched(self) -> bool:
        return all(writer.matched() >= self._plan.subscribers for writer in self._writers)

    def exchange(self) -> tuple[int, int]:
        plan = self._plan
        due_ns = time.monotonic_ns() + plan.period_ns
        end_ns = due_ns + plan.ticks * plan.period_ns + _PATIENCE_NS
        ticks = received = 0
        while received < plan.deliveries and (now_ns := time.monotonic_ns()) < end_ns:
            if ticks < plan.ticks and now_ns >= due_ns:
                for writer in self._writers:
                    writer.write(self._data, wall_clock_ns())
                ticks += 1
                due_ns += plan.period_ns
            else:
                self._waitset.wait((due_ns if ticks < plan.ticks else end_ns) - now_ns)
                received += sum(len(reader.take_many(_BATCH)) for reader in self._readers if reader.has_data())
        return ticks * plan.topics, received


@dataclass
class _Member:
    node: Node
    publishers: list[Publisher] = field(default_factory=list)
    ticks_left: int = 0
    timer: Timer | None = None


class Nodes:
    """Nodes with one timer each; at every tick, a node's publishers publish, unless not `publishes`.

    Publishers and subscriptions are spread over the nodes. With `own_participants`, each node has its own participant,
    and its own executor on a thread.
    """

    def __init__(self, plan: Plan, *, nodes: int, own_participants: bool = False, publishes: bool = True) -> None:
        self._plan = plan
        self._message = default(_TYPE, data="X" * plan.size_bytes)
        self._expected = plan.deliveries if publishes else 0
        count = nodes if own_participants else 1
        self._contexts = [Context(plan.domain, is_first=not number) for number in range(count)]
        members = [_Member(Node(self._contexts[number % count], f"cost_node_{number}")) for number in range(nodes)]
        for number, topic in enumerate(plan.topic_names if publishes else ()):
            owner = members[number % nodes]
            owner.publishers.append(owner.node.create_publisher(_TYPE, topic))
            for place in range(plan.subscribers):
                members[place % nodes].node.create_subscription(_TYPE, topic, self._receive)
        for member in members:
            member.timer = member.node.create_timer(plan.period_ns, self._ticker(member))
        self._members = members
        self._published = self._received = self._ticks_left = 0
        self._end_ns = 0
        self._lock = threading.Lock()

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
        self._end_ns = time.monotonic_ns() + self._plan.ticks * self._plan.period_ns + _PATIENCE_NS
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
        while (self._ticks_left or self._received < self._expected) and time.monotonic_ns() < self._end_ns:
            context.executor.spin_once()
        for other in self._contexts:
            other.executor.wake()


MAKERS: Final[Mapping[Rung, Callable[[Plan], Traffic]]] = {
    Rung.IN_PROCESS: InProcess,
    Rung.NO_PUBLISHING: lambda plan: Nodes(plan, nodes=plan.nodes, publishes=False),
    Rung.DDS: DdsOnly,
    Rung.ONE_NODE: lambda plan: Nodes(plan, nodes=1),
    Rung.MANY_NODES: lambda plan: Nodes(plan, nodes=plan.nodes),
    Rung.MANY_PARTICIPANTS: lambda plan: Nodes(plan, nodes=plan.nodes, own_participants=True),
}


def read_usage() -> Mapping[str, int]:
    """Returns the resource usage of this process so far, summed over its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "user_ns": round(used.ru_utime * NS_PER_S),
        "system_ns": round(used.ru_stime * NS_PER_S),
        "voluntary": used.ru_nvcsw,
        "involuntary": used.ru_nivcsw,
    }


def measure(traffic: Traffic, ticks: int) -> Mapping[str, int]:
    before, begin_ns = read_usage(), time.monotonic_ns()
    published, received = traffic.exchange()
    after, wall_ns = read_usage(), time.monotonic_ns() - begin_ns
    used = {name: after[name] - before[name] for name in after}
    return {"ticks": ticks, "published": published, "received": received, "wall_ns": wall_ns, **used}


def main() -> None:
    settings = given_settings()
    rung, match_s = Rung(settings.pop("rung")), settings.pop("match_s")
    plan = Plan(**settings)
    traffic = MAKERS[rung](plan)
    answer_lines(lambda _: measure(traffic, plan.ticks), is_matched=traffic.is_matched, match_s=match_s)


if __name__ == "__main__":
    main()
