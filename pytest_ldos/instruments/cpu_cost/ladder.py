"""Measures the ladder, with a process per rung."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import psutil

from pytest_ldos.base.text import NS_PER_MS
from pytest_ldos.host.hardware_counters import Counters, Event
from pytest_ldos.host.kept import AnsweringChild, ChildFailed, attempt, whole
from pytest_ldos.host.process_times import process_cpu_ns
from pytest_ldos.host.processes import Child, ProcessGroup
from pytest_ldos.host.temporary import temporary_folder
from pytest_ldos.instruments.cost_layers import Kind, Layer, leaving_no_memory
from pytest_ldos.instruments.cpu_cost.spec import CpuCostSpec, Rung
from pytest_ldos.instruments.instrument import Progress
from pytest_ldos.robot.dds.domain import claim_domain

CLOCK_SLACK_NS: Final = 10 * NS_PER_MS
"""Tolerance between two of the kernel's counts: one tick."""


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """Messages, and the CPU use of all threads of the process for them.

    Attributes:
        published, received: messages; each published message is received by several subscribers.
        user_ns, system_ns: CPU time; the sum is exact, its split into user and system is sampled by ticks.
        voluntary, involuntary: context switches.
        cycles: CPU cycles; ``None`` if they cannot be counted.
        migrations: moves of threads to another CPU; ``None`` if they cannot be counted.
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
        """Builds the exchange from a process's answer.

        Raises:
            ChildFailed: the answer is invalid.
        """
        return cls(
            ticks=whole(answer, "ticks"),
            published=whole(answer, "published"),
            received=whole(answer, "received"),
            wall_ns=whole(answer, "wall_ns"),
            user_ns=whole(answer, "user_ns"),
            system_ns=whole(answer, "system_ns"),
            voluntary=whole(answer, "voluntary"),
            involuntary=whole(answer, "involuntary"),
            cycles=cycles,
            migrations=migrations,
        )


def make_exchange(child: AnsweringChild, *, limit_s: float) -> Exchange:
    """Requests one exchange of messages from a process.

    Raises:
        ChildFailed: it ended, did not answer, or reports more CPU time than the kernel counted.
    """
    pid = child.child.pid
    before_ns = _cpu_ns(child.child)
    with _counted(Event.CPU_CYCLES, pid) as cycles, _counted(Event.CPU_MIGRATIONS, pid) as migrations:
        answer = child.ask("exchange", limit_s=limit_s)
        exchange = Exchange.of(answer, cycles=cycles(), migrations=migrations())
    seen_ns = _cpu_ns(child.child) - before_ns
    if exchange.cpu_ns > seen_ns + CLOCK_SLACK_NS:
        used, seen = exchange.cpu_ns / NS_PER_MS, seen_ns / NS_PER_MS
        raise ChildFailed(
            f"{child.child.name} says that it used {used:.1f} ms of CPU, the kernel counted {seen:.1f} ms"
        )
    return exchange


@contextmanager
def _counted(event: Event, pid: int) -> Iterator[Callable[[], int | None]]:
    """Counts an event in all threads of a process and their later children."""
    counters = Counters(event, _threads_of(pid))
    before = counters.read()
    try:
        yield lambda: None if before is None else (counters.read() or 0) - before
    finally:
        counters.close()


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


def _threads_of(pid: int) -> list[int]:
    try:
        return [thread.id for thread in psutil.Process(pid).threads()]
    except psutil.NoSuchProcess:
        return [pid]


MATCH_S: Final = 20.0
"""Time limit for publishers and subscribers to find each other."""

_START_S: Final = 20.0
"""Time limit for the concurrent start of processes on a busy machine."""

_GRACE_S: Final = 10.0
"""Additional time limit for the answer of an exchange."""

_MODULE: Final = "pytest_ldos.instruments.cpu_cost.exchange_program"
_PROGRAM: Final = "cost_ladder"


@dataclass(frozen=True, kw_only=True)
class RungRound:
    """One exchange on one rung.

    Attributes:
        block: number of the start, counted over all layers.
        result: the exchange, or the reason why there is none.
    """

    layer: Layer
    rung: Rung
    block: int
    result: Exchange | str


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """The rungs of a layer to measure.

    Attributes:
        first_block: block number of its first start.
    """

    spec: CpuCostSpec
    layer: Layer
    first_block: int
    progress: Progress

    @property
    def rungs(self) -> Sequence[Rung]:
        return self.spec.chosen_rungs

    def measure(self) -> Iterator[RungRound]:
        """Yields all rounds of all starts."""
        for start in range(self.spec.starts):
            self.progress.doing(f"{self.layer.label}, start {start + 1} of {self.spec.starts}")
            with self._started() as children:
                yield from self._rounds(children, start)

    def _rounds(self, children: dict[Rung, AnsweringChild | str], start: int) -> Iterator[RungRound]:
        """Reverses the order of the rungs on every second pass, so that drift affects all rungs alike.

        A failed process is not used again, because a later answer could belong to an earlier request.
        """
        for number in range(self.spec.rounds):
            order = self.rungs if (start + number) % 2 == 0 else tuple(reversed(self.rungs))
            for rung in order:
                result = self._exchange(children[rung])
                if isinstance(result, str):
                    children[rung] = result
                self.progress.step()
                yield RungRound(layer=self.layer, rung=rung, block=self.first_block + start, result=result)

    def _exchange(self, child: AnsweringChild | str) -> Exchange | str:
        if isinstance(child, str):
            return child
        return attempt(partial(make_exchange, child, limit_s=self.spec.seconds + _GRACE_S))

    @contextmanager
    def _started(self) -> Iterator[dict[Rung, AnsweringChild | str]]:
        """Starts a process per rung on a separate domain; a text is the reason of a failure."""
        with ExitStack() as stack:
            stack.enter_context(leaving_no_memory())
            folder = stack.enter_context(temporary_folder("ldos-cpu-cost-"))
            children = {rung: self._start(rung, folder, stack) for rung in self.rungs}
            yield {rung: attempt(partial(_matched, child)) for rung, child in children.items()}
            for child in children.values():
                child.close()
            for child in children.values():
                child.await_end()

    def _start(self, rung: Rung, folder: Path, stack: ExitStack) -> AnsweringChild:
        domain = stack.enter_context(claim_domain())
        environment = stack.enter_context(self.layer.isolated(domain=domain, log_directory=folder))
        group = ProcessGroup(log_directory=folder, environment=environment)
        stack.callback(group.stop)
        command = self.layer.command(_MODULE, _PROGRAM, self._settings(rung, domain))
        return AnsweringChild(group.start(f"{self.layer.kind}-{rung}", command, talk=True))

    def _settings(self, rung: Rung, domain: int) -> Mapping[str, str | int | float]:
        spec = self.spec
        own = {"domain": domain} if self.layer.kind is Kind.EMBEDDED else {}
        return {
            "rung": str(rung),
            "match_s": MATCH_S,
            "topics": spec.topics,
            "subscribers": spec.subscribers,
            "nodes": spec.nodes,
            "rate_hz": spec.rate_hz,
            "size_bytes": spec.size_bytes,
            "ticks": spec.ticks,
            **own,
        }


def _matched(child: AnsweringChild) -> AnsweringChild:
    """Returns a process whose publishers and subscribers have found each other.

    Raises:
        ChildFailed: they have not, or the process failed.
    """
    answer = child.answer(limit_s=MATCH_S + _START_S)
    if answer.get("matched") is not True:
        name = child.child.name
        raise ChildFailed(f"publishers and subscribers of {name} did not find each other in {MATCH_S:.0f} s")
    return child
