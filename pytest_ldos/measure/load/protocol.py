"""Common interface of loads, with their proofs and scheduler groups."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from pytest_ldos.base.paths import BUILT_IN_PATHS, PathSpec
from pytest_ldos.host.availability import Availability
from pytest_ldos.host.cpu import SchedulingGroup, read_scheduling_group
from pytest_ldos.record.protocol import Recorder
from pytest_ldos.scenario.loads import LoadSpec, SchedulerGroup
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.words import StackKind


@dataclass(frozen=True, kw_only=True)
class LoadProof:
    """The load actually applied, as measured.

    Attributes:
        kind: the kind of load, e.g. ``dds_flood``.
        seconds: duration of the measurement.
        shortfall: difference from the requested load; empty if there is none.
    """

    kind: str
    seconds: float
    shortfall: str

    @property
    def applied(self) -> float:
        """Amount applied, comparable between proofs of the same load."""
        return self.seconds

    def describe(self) -> str:
        """Returns a line of text."""
        return self.kind


class RunningLoad(Protocol):
    """A load that is being applied."""

    @property
    def spec(self) -> LoadSpec:
        """The requested load."""

    @property
    def proof(self) -> LoadProof:
        """The load applied so far; after the end, in total."""


@dataclass(frozen=True)
class LoadSite:
    """A stack to which loads are applied, and its environment.

    Attributes:
        domain: DDS domain of the stack.
        recorder: recorder of the stack; also records loads that are ROS nodes.
        log_directory: folder for the logs of the load's processes.
        kind, has_simulated_clock: of the stack, as in `StackInfo`.
        environment: variables for processes that use the stack's domain and middleware.
        pids: returns the stack's present processes.
        paths: the known causal paths.
        loads: all loads applied there.
    """

    domain: int
    recorder: Recorder
    log_directory: Path
    kind: StackKind = StackKind.EMBEDDED
    has_simulated_clock: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    pids: Callable[[], list[int]] = list
    stack: StackSpec = field(default_factory=StackSpec)
    paths: Sequence[PathSpec] = BUILT_IN_PATHS
    loads: Sequence[LoadSpec] = ()


@dataclass(frozen=True)
class Load:
    """The implementation of a kind of load.

    Attributes:
        run: context manager that applies it.
        available: reports if it can be applied to a stack on this machine.
        package: package of the ROS workspace with its programs for a ROS 2 stack; empty if there is none.
        proof: type of its proof.
    """

    run: Callable[[Any, LoadSite], AbstractContextManager[RunningLoad]]
    available: Callable[[Any, StackSpec], Availability] = lambda *_: Availability(True)
    package: str = ""
    proof: type[LoadProof] = LoadProof


def proof_to_dict(proof: LoadProof) -> dict[str, Any]:
    """Returns a proof as plain values, with its summary."""
    return {**vars(proof), "summary": proof.describe()}


_PERIOD_S: Final = 1.0


@contextmanager
def watched(look: Callable[[], None]) -> Iterator[None]:
    """Calls `look` every second in a separate thread.

    Raises:
        Exception: the error that `look` raised; it is not called again.
    """
    stopping = threading.Event()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            while not stopping.wait(_PERIOD_S):
                look()
        except BaseException as error:  # noqa: BLE001 - raised where the context ends
            failures.append(error)

    thread = threading.Thread(target=run, name="watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()
    if failures:
        raise failures[0]


OFF: Final = "sched_autogroup is off on this machine: sessions make no difference"
NO_STACK_PROCESS: Final = "no process of the stack is there to compare with"


@dataclass(frozen=True, kw_only=True)
class GroupedProof(LoadProof):
    """See `LoadProof`.

    Attributes:
        group: the requested group, `stack` or `own`.
        group_found: the kernel's scheduler groups of the load and the stack.
    """

    group: str
    group_found: str


@dataclass(frozen=True)
class GroupReading:
    """The scheduler group found for a load, as text, and its difference from the requested one; empty if none."""

    found: str
    shortfall: str = ""


NOT_READ: Final = GroupReading(NO_STACK_PROCESS)


def read_group(asked: SchedulerGroup, pids: Iterable[int], site: LoadSite) -> GroupReading | None:
    """Reads the groups of the load's and the stack's processes; ``None`` if either has no running process."""
    load, stack = (
        frozenset(group for pid in each if (group := read_scheduling_group(pid)) is not None)
        for each in (pids, site.pids())
    )
    return judge_group(asked, load, stack) if load and stack else None


def judge_group(
    asked: SchedulerGroup, load: frozenset[SchedulingGroup], stack: frozenset[SchedulingGroup]
) -> GroupReading:
    if all(not each.cgroup and not each.by_session for each in load | stack):
        return GroupReading(OFF)
    loads_names, stacks_names = (", ".join(sorted({each.describe() for each in group})) for group in (load, stack))
    as_stack, separately = f"{loads_names}, as the stack", f"{loads_names}, the stack in {stacks_names}"
    loads, stacks = {each.effective for each in load}, {each.effective for each in stack}
    if any(each.cgroup for each in load | stack):
        if not loads <= stacks:
            return GroupReading(f"{separately}; these groups, not sessions, share the CPUs")
        no_difference = "; sessions make no difference in it" if asked == SchedulerGroup.OWN else ""
        return GroupReading(f"{as_stack}{no_difference}")
    if asked == SchedulerGroup.OWN:
        fault = f"the load shares the stack's scheduler group: {separately}" if loads & stacks else ""
        return GroupReading(separately, fault)
    if loads <= stacks:
        return GroupReading(as_stack)
    return GroupReading(separately, f"the load is not in the stack's scheduler group: {separately}")
