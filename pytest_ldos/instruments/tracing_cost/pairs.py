"""Latencies with and without tracing, measured in fresh processes, interleaved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import RecordingFailed, Unavailable
from pytest_ldos.host.kept import AnsweringChild, ChildFailed, summary_of, whole
from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.host.temporary import temporary_folder
from pytest_ldos.instruments.cost_layers import Kind, Layer, leaving_no_memory
from pytest_ldos.instruments.instrument import Progress
from pytest_ldos.instruments.tracing_cost.recordings import (
    CALLBACK,
    TITLES,
    Mode,
    Recorded,
    Site,
    exchanges_under,
    opened,
)
from pytest_ldos.instruments.tracing_cost.spec import Case, TracingCostSpec
from pytest_ldos.robot.dds.domain import claim_domain

MATCH_S: Final = 20.0
"""Time limit for the publisher and the subscription to find each other."""

LOOPS: Final = 3
"""Number of timed loops of tracepoints per start."""

_START_S: Final = 20.0
_GRACE_S: Final = 20.0
"""Additional time limit of an exchange, because an eBPF probe can take longer than the interval between messages."""

_WARM_UP_MESSAGES: Final = 20
_KIB: Final = 1024
_MODULE: Final = "pytest_ldos.instruments.tracing_cost.pair_program"
_PROGRAM: Final = "publish_callback"


@dataclass(frozen=True)
class Latencies:
    """Latencies of one case in one start.

    Attributes:
        latencies_ns: from publish to callback, of the received messages.
    """

    published: int
    latencies_ns: tuple[int, ...]


@dataclass
class Start:
    """Measurements of one process.

    Attributes:
        pair: number of the pass; each pass starts every mode once.
        block: number of the start, counted over all layers and modes.
        cases: latencies by case.
        warm_up: number of messages received in the warm-up.
        tracepoint_ns: time per call, one value for each loop.
        timed_calls: number of calls in all these loops.
        recorded: content of the recording at the end.
        failure: reason why the measurement is incomplete; available values are valid unless nothing was recorded.
    """

    layer: Layer
    mode: Mode
    pair: int
    block: int
    cases: dict[Case, Latencies] = field(default_factory=dict)
    warm_up: int = 0
    tracepoint_ns: list[float] = field(default_factory=list)
    timed_calls: int = 0
    recorded: Recorded = field(default_factory=Recorded)
    failure: str = ""

    @property
    def received(self) -> int:
        """Number of messages with a latency, without the warm-up."""
        return sum(len(each.latencies_ns) for each in self.cases.values())

    @property
    def is_proven(self) -> bool:
        """True if the recording contains every callback and timed call, or counts it as lost."""
        if self.mode is Mode.UNTRACED:
            return True
        counts, lost = self.recorded.counts, self.recorded.lost
        has_callbacks = counts.get(CALLBACK, 0) + lost >= self.received
        return has_callbacks and 0 < self.timed_calls <= sum(counts.values()) + lost


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """A layer to measure under each mode.

    Attributes:
        modes: modes of recording, untraced first.
        first_block: block number of its first start.
    """

    spec: TracingCostSpec
    layer: Layer
    modes: Sequence[Mode]
    first_block: int
    progress: Progress

    def measure(self) -> Iterator[Start]:
        """Starts a process for each mode; every second pass is reversed, so that drift affects all modes alike."""
        block = self.first_block
        for pair in range(self.spec.starts):
            for mode in self.modes if pair % 2 == 0 else reversed(self.modes):
                self.progress.doing(f"{self.layer.label}, {TITLES[mode]}, {pair + 1} of {self.spec.starts}")
                yield self._measure(Start(self.layer, mode, pair, block))
                self.progress.step()
                block += 1

    def _measure(self, start: Start) -> Start:
        """Measures a start as far as possible, and records a failure."""
        try:
            with ExitStack() as stack:
                stack.enter_context(leaving_no_memory())
                folder = stack.enter_context(temporary_folder("ldos-tracing-cost-"))
                site = stack.enter_context(opened(start.mode, self.layer, folder))
                self._run(start, site, folder)
                start.recorded = site.finish()
        except (ChildFailed, RecordingFailed, Unavailable) as error:
            start.failure = summary_of(error)
        else:
            start.failure = "" if start.is_proven else "what was to be recorded is not in the recording"
        return start

    def _run(self, start: Start, site: Site, folder: Path) -> None:
        """Runs the process of a start."""
        with ExitStack() as stack:
            domain = stack.enter_context(claim_domain())
            isolated = stack.enter_context(self.layer.isolated(domain=domain, log_directory=folder))
            environment = {**site.environment, **isolated}
            group = ProcessGroup(log_directory=folder, prefix=site.prefix, environment=environment)
            stack.callback(group.stop)
            own = {"domain": domain} if self.layer.kind is Kind.EMBEDDED else {}
            command = self.layer.command(_MODULE, _PROGRAM, {"match_s": MATCH_S, **own})
            child = AnsweringChild(group.start(f"{self.layer.kind}-{start.mode}", command, talk=True))
            require_match(child)
            with site.attach(child.child.pid):
                self._ask_all(start, child)
            child.close()
            child.await_end()

    def _ask_all(self, start: Start, child: AnsweringChild) -> None:
        """Runs all exchanges, then times tracepoints, which may fill the buffers."""
        if exchanges_under(start.mode, self.layer):
            cases = self.spec.cases if start.pair % 2 == 0 else tuple(reversed(self.spec.cases))
            start.warm_up = len(self._exchange(child, cases[0], _WARM_UP_MESSAGES).latencies_ns)
            for case in cases:
                start.cases[case] = self._exchange(child, case, self.spec.ticks(case))
        for _ in range(LOOPS):
            answer = child.ask(f"tracepoints {self.spec.calls}", limit_s=_GRACE_S)
            calls = whole(answer, "calls", least=1)
            start.tracepoint_ns.append(whole(answer, "elapsed_ns", least=1) / calls)
            start.timed_calls += calls

    def _exchange(self, child: AnsweringChild, case: Case, ticks: int) -> Latencies:
        question = f"exchange {case.size_kib * _KIB} {ticks} {case.rate_hz}"
        return read_latencies(child.ask(question, limit_s=ticks / case.rate_hz + _GRACE_S), ticks)


def require_match(child: AnsweringChild) -> None:
    """Waits until a process's publisher and subscription have found each other.

    Raises:
        ChildFailed: they did not.
    """
    if child.answer(limit_s=MATCH_S + _START_S).get("matched") is not True:
        raise ChildFailed(f"publisher and subscription did not find each other in {MATCH_S:.0f} s")


def read_latencies(answer: Mapping[str, Any], ticks: int) -> Latencies:
    """Reads latencies from a process's answer.

    Raises:
        ChildFailed: the answer is invalid.
    """
    published, found = whole(answer, "published"), answer.get("latencies_ns")
    is_list = isinstance(found, list) and all(type(each) is int and each >= 0 for each in found)
    if published != ticks or not is_list or len(found or ()) > published:
        raise ChildFailed(f"an answer about {ticks} messages holds {published} and latencies that are none of theirs")
    return Latencies(published, tuple(found or ()))
