"""Measures the ladder: each rung in a process of its own, the rungs interleaved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from pytest_ldos.host.answering import AnsweringChild, ChildFailed, attempt
from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.host.temporary import temporary_folder
from pytest_ldos.instruments.cost_layers import Kind, Layer, leaving_no_memory
from pytest_ldos.instruments.cpu_cost.exchange import Exchange, make_exchange
from pytest_ldos.instruments.cpu_cost.rungs import Rung
from pytest_ldos.instruments.cpu_cost.spec import CpuCostSpec
from pytest_ldos.instruments.instrument import Progress
from pytest_ldos.robot.dds.domain import claim_domain

MATCH_S: Final = 20.0
"""Time within which publishers and subscribers must find each other."""

_START_S: Final = 20.0
"""Time for a process to start together with others, on a busy machine."""

_GRACE_S: Final = 10.0
"""Time beyond its own limit in which an exchange must be answered."""

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

        A process that failed once is not asked again: a later answer might belong to an earlier question.
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
        """Starts a process for each rung, on a domain of its own; a text gives the reason if one cannot be asked."""
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
