"""Settings of `ldos cpu-cost`, the rungs of its ladder, and their measurement with a process per rung.

Reference: `studies/cpu_cost` compares it with published figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Final

import psutil

from pytest_ldos.base.errors import ConfigurationError, require, suggest
from pytest_ldos.base.text import NS_PER_MS
from pytest_ldos.host.counters import Counters, Event, process_cpu_ns
from pytest_ldos.host.kept import AnsweringChild, ChildFailed, attempt, whole
from pytest_ldos.host.processes import Child
from pytest_ldos.host.temporary import temporary_folder
from pytest_ldos.instruments.cost_layers import MATCH_S, Layer, LayersSpec, await_match, leaving_no_memory
from pytest_ldos.instruments.study import Progress, alternate, setting


class Rung(StrEnum):
    """Rungs, in display order."""

    IN_PROCESS = "in_process"  # publishing calls each subscriber directly
    NO_PUBLISHING = "no_publishing"  # nodes with timers that publish nothing
    DDS = "dds"  # DDS writers and readers without nodes
    ONE_NODE = "one_node"  # all publishers and subscriptions in one node
    MANY_NODES = "many_nodes"  # spread over nodes that share a participant, as since ROS 2 Foxy
    MANY_PARTICIPANTS = "many_participants"  # spread over nodes with a participant each, as before Foxy


TITLES: Final[Mapping[Rung, str]] = {
    **{rung: rung.replace("_", " ") for rung in Rung},
    Rung.IN_PROCESS: "in-process calls",
    Rung.DDS: "DDS only",
}


def parse_rungs(text: str) -> Sequence[Rung]:
    """Splits a comma-separated list of rungs, empty for all; raises `ConfigurationError` with the nearest name."""
    names = [part.strip() for part in text.split(",") if part.strip()]
    for name in names:
        if name not in tuple(Rung):
            raise ConfigurationError(f"{name!r} is no rung of the ladder", remedy=suggest(name, tuple(Rung)))
    return [each for each in Rung if not names or each in names]


MOST_NODES: Final = 30  # number of participants that rmw_cyclonedds finds on one machine by default
_MOST_SUBSCRIPTIONS: Final = 2000
_LONGEST_ROUND_S: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class CpuCostSpec(LayersSpec):
    """The traffic, and the numbers of exchanges per rung."""

    rungs: str = setting("", "in_process, no_publishing, dds, one_node, many_nodes, many_participants. [default: all]")
    topics: int = setting(20, "Topics, each with one publisher.")
    subscribers: int = setting(10, "Subscribers of each topic.")
    nodes: int = setting(10, "Nodes of the rungs that have many.")
    rate_hz: float = setting(10.0, "Messages a second of each topic.", "--rate")
    size_bytes: int = setting(64, "Bytes of a message's text.", "--size")
    seconds: float = setting(1.0, "Seconds of a round.")
    rounds: int = setting(2, "Rounds of each rung in a start; rungs are interleaved.")
    starts: int = setting(5, "Starts of the processes; intervals are over these.")

    def __post_init__(self) -> None:
        super().__post_init__()
        parse_rungs(self.rungs)
        require(self.topics >= 1, f"{self.topics} topics", remedy="at least 1")
        require(self.subscribers >= 1, f"{self.subscribers} subscribers of a topic", remedy="at least 1")
        subscriptions = f"{self.topics} topics with {self.subscribers} subscribers each"
        most = f"at most {_MOST_SUBSCRIPTIONS} subscriptions in all"
        require(self.topics * self.subscribers <= _MOST_SUBSCRIPTIONS, subscriptions, remedy=most)
        require(1 <= self.nodes <= MOST_NODES, f"{self.nodes} nodes", remedy=f"between 1 and {MOST_NODES}")
        rates = "between 0.1 and 10 000 Hz a topic"
        require(0.1 <= self.rate_hz <= 10_000, f"a rate of {self.rate_hz:g} Hz", remedy=rates)
        require(1 <= self.size_bytes <= 1 << 20, f"messages of {self.size_bytes} bytes", remedy="between 1 and 1048576")
        longest = f"more than 0 and at most {_LONGEST_ROUND_S:.0f} s"
        require(0 < self.seconds <= _LONGEST_ROUND_S, f"rounds of {self.seconds:g} s", remedy=longest)
        require(self.ticks >= 1, "a round without a message", remedy="longer rounds, or a higher rate")
        require(1 <= self.rounds <= 1000, f"{self.rounds} rounds", remedy="between 1 and 1000")
        require(1 <= self.starts <= 1000, f"{self.starts} starts", remedy="between 1 and 1000")

    @property
    def ticks(self) -> int:
        """Messages of each publisher in a round."""
        return round(self.rate_hz * self.seconds)

    @property
    def messages(self) -> int:
        return self.ticks * self.topics

    @property
    def chosen_rungs(self) -> Sequence[Rung]:
        return parse_rungs(self.rungs)

    @property
    def traffic(self) -> str:
        """Description of the traffic, for the name of a case: ``20 × 1 → 10, 10 Hz, 64 B``."""
        return f"{self.topics} × 1 → {self.subscribers}, {self.rate_hz:g} Hz, {self.size_bytes} B"


CLOCK_SLACK_NS: Final = 10 * NS_PER_MS  # tolerance between two of the kernel's counts: one tick


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """Messages, and the CPU use of all threads of the process for them.

    Attributes:
        published, received: messages; each published message is received by several subscribers.
        user_ns, system_ns: CPU time; the sum is exact, its split into user and system is sampled by ticks.
        cycles, migrations: of the CPU, and to other CPUs; ``None`` if they cannot be counted.
    """

    ticks: int
    published: int
    received: int
    wall_ns: int
    user_ns: int
    system_ns: int
    voluntary: int
    involuntary: int
    cycles: int | None = None
    migrations: int | None = None

    @property
    def cpu_ns(self) -> int:
        return self.user_ns + self.system_ns

    @property
    def switches(self) -> int:
        return self.voluntary + self.involuntary

    @classmethod
    def of(cls, answer: Mapping[str, Any], *, cycles: int | None = None, migrations: int | None = None) -> Exchange:
        """Builds the exchange from a process's answer; raises `ChildFailed` if that is invalid."""
        return cls(**{name: whole(answer, name) for name in _REPORTED}, cycles=cycles, migrations=migrations)


_REPORTED: Final = ("ticks", "published", "received", "wall_ns", "user_ns", "system_ns", "voluntary", "involuntary")


def make_exchange(child: AnsweringChild, *, limit_s: float) -> Exchange:
    """Requests one exchange of messages from a process; raises `ChildFailed` also if it reports too much CPU time."""
    pid = child.child.pid
    before_ns = _cpu_ns(child.child)
    with _counted(Event.CPU_CYCLES, pid) as cycles, _counted(Event.CPU_MIGRATIONS, pid) as migrations:
        exchange = Exchange.of(child.ask("exchange", limit_s=limit_s), cycles=cycles(), migrations=migrations())
    seen_ns = _cpu_ns(child.child) - before_ns
    if exchange.cpu_ns > seen_ns + CLOCK_SLACK_NS:
        name, used, seen = child.child.name, exchange.cpu_ns / NS_PER_MS, seen_ns / NS_PER_MS
        raise ChildFailed(f"{name} says that it used {used:.1f} ms of CPU, the kernel counted {seen:.1f} ms")
    return exchange


@contextmanager
def _counted(event: Event, pid: int) -> Iterator[Callable[[], int | None]]:
    try:
        threads = [thread.id for thread in psutil.Process(pid).threads()]
    except psutil.NoSuchProcess:
        threads = [pid]
    with closing(Counters(event, threads)) as counters:
        before = counters.read()
        yield lambda: None if before is None else (counters.read() or 0) - before


def why_not_counted(event: Event, pid: int) -> str:
    """Returns the reason why an event of a process cannot be counted; empty if it can."""
    counters = Counters(event, [pid])
    counters.close()
    return counters.reason


def _cpu_ns(child: Child) -> int:
    try:
        return process_cpu_ns(child.pid)
    except OSError:
        raise ChildFailed(child.describe_end(), details=child.last_lines()) from None


_GRACE_S: Final = 10.0  # additional time limit for the answer of an exchange
_MODULE: Final = "pytest_ldos.instruments.cpu_cost.exchange_program"
_PROGRAM: Final = "cost_ladder"


@dataclass(frozen=True, kw_only=True)
class RungRound:
    """One exchange on one rung, or the reason why there is none; `block` counts the starts of all layers."""

    layer: Layer
    rung: Rung
    block: int
    result: Exchange | str


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """The rungs of a layer to measure; `first_block` is the block number of its first start."""

    spec: CpuCostSpec
    layer: Layer
    first_block: int
    progress: Progress

    def measure(self) -> Iterator[RungRound]:
        for start in range(self.spec.starts):
            self.progress.doing(f"{self.layer.label}, start {start + 1} of {self.spec.starts}")
            with self._started() as children:
                yield from self._rounds(children, start)

    def _rounds(self, children: dict[Rung, AnsweringChild | str], start: int) -> Iterator[RungRound]:
        """Yields the rounds of a start; does not use a failed process again, which could answer an earlier request."""
        for number in range(self.spec.rounds):
            for rung in alternate(self.spec.chosen_rungs, start + number):
                child, limit_s = children[rung], self.spec.seconds + _GRACE_S
                result = child if isinstance(child, str) else attempt(partial(make_exchange, child, limit_s=limit_s))
                if isinstance(result, str):
                    children[rung] = result
                self.progress.step()
                yield RungRound(layer=self.layer, rung=rung, block=self.first_block + start, result=result)

    @contextmanager
    def _started(self) -> Iterator[dict[Rung, AnsweringChild | str]]:
        """Starts a process per rung on a separate domain; a text is the reason of a failure."""
        with ExitStack() as stack:
            stack.enter_context(leaving_no_memory())
            folder = stack.enter_context(temporary_folder("ldos-cpu-cost-"))
            start = partial(self.layer.start, module=_MODULE, program=_PROGRAM, folder=folder, resources=stack)
            children = {rung: start(str(rung), self._settings(rung)) for rung in self.spec.chosen_rungs}
            yield {rung: attempt(partial(await_match, child)) for rung, child in children.items()}
            for child in children.values():
                child.close()
            for child in children.values():
                child.await_end()

    def _settings(self, rung: Rung) -> Mapping[str, str | int | float]:
        names = ("topics", "subscribers", "nodes", "rate_hz", "size_bytes", "ticks")
        return {"rung": str(rung), "match_s": MATCH_S, **{name: getattr(self.spec, name) for name in names}}
