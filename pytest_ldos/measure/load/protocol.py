"""Loads: their interface, proofs and scheduler groups, and how they are applied."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from pytest_ldos.base.errors import LoadFailed
from pytest_ldos.base.ros2 import BUILT_IN_PATHS, PathSpec
from pytest_ldos.host.availability import Availability, find_modules
from pytest_ldos.host.cpu import SchedulingGroup, read_scheduling_group
from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.record.protocol import Recorder
from pytest_ldos.robot.stack.choose import resolve_kind
from pytest_ldos.scenario.loads import LOAD_SPECS, LoadSpec, SchedulerGroup
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
        return self.kind


class RunningLoad(Protocol):
    """A load that is being applied."""

    @property
    def spec(self) -> LoadSpec: ...

    @property
    def proof(self) -> LoadProof:
        """The load applied so far; after the end, in total."""


@dataclass(frozen=True)
class LoadSite:
    """A stack to which loads are applied, and its environment."""

    domain: int
    recorder: Recorder  # also records loads that are ROS nodes
    log_directory: Path
    kind: StackKind = StackKind.EMBEDDED
    has_simulated_clock: bool = False
    # variables for processes that use the stack's domain and middleware
    environment: Mapping[str, str] = field(default_factory=dict)
    pids: Callable[[], list[int]] = list  # returns the stack's present processes
    stack: StackSpec = field(default_factory=StackSpec)
    paths: Sequence[PathSpec] = BUILT_IN_PATHS


@dataclass(frozen=True)
class Load:
    """The implementation of a kind of load."""

    run: Callable[[Any, LoadSite], AbstractContextManager[RunningLoad]]
    available: Callable[[Any, StackSpec], Availability] = lambda *_: Availability(True)
    has_nodes: bool = False  # True if it consists of nodes, over DDS or, on a ROS 2 stack, over rclpy
    proof: type[LoadProof] = LoadProof


def proof_to_dict(proof: LoadProof) -> dict[str, Any]:
    return {**vars(proof), "summary": proof.describe()}


Spec = TypeVar("Spec", bound=LoadSpec)
Proof = TypeVar("Proof", bound=LoadProof)


class MeasuredLoad(Generic[Spec, Proof]):
    """A load with a measured proof, which `close` freezes, so that its end is no shortfall; see `RunningLoad`."""

    def __init__(self, spec: Spec, measure: Callable[[], Proof]) -> None:
        self.spec = spec
        self._measure = measure
        self._final: Proof | None = None

    @property
    def proof(self) -> Proof:
        return self._final or self._measure()

    def close(self) -> None:
        self._final = self._measure()


_PERIOD_S: Final = 1.0


@contextmanager
def watched(look: Callable[[], None]) -> Iterator[None]:
    """Calls `look` every second in a thread until it fails, and at the end of the ``with`` block; raises its error."""
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
    look()


OFF: Final = "sched_autogroup is off on this machine: sessions make no difference"
NO_STACK_PROCESS: Final = "no process of the stack is there to compare with"


@dataclass(frozen=True, kw_only=True)
class GroupedProof(LoadProof):
    """Proof of a load with processes.

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
    """Reads the groups of the load's and the stack's processes; ``None`` if either has none that runs."""
    load, stack = (
        frozenset(group for pid in each if (group := read_scheduling_group(pid)) is not None)
        for each in (pids, site.pids())
    )
    return judge_group(asked, load, stack) if load and stack else None


@contextmanager
def load_processes(
    asked: SchedulerGroup,
    site: LoadSite,
    *,
    environment: Mapping[str, str] | None = None,
    death_signal: signal.Signals = signal.SIGKILL,
) -> Iterator[ProcessGroup]:
    """A group for a load's processes during the ``with`` block; with `environment`, they are recorded ROS nodes."""
    group = ProcessGroup(
        log_directory=site.log_directory,
        prefix=() if environment is None else site.recorder.prefix,
        environment=None if environment is None else {**environment, **site.recorder.environment},
        death_signal=death_signal,
        own_session=asked == SchedulerGroup.OWN,
    )
    try:
        yield group
    finally:
        group.stop()


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


_EMBEDDED_PARTS: Final = ("cyclonedds", "rosbags")
_MODULES: Final = dict.fromkeys(("cpu_load", "memory_load", "cache_load", "io_load"), "stress_loads")
"""Modules of loads that share one."""


class _Loads(dict[str, Load]):
    """Implementations by kind, imported on first use; the module ``measure.load.KIND`` defines `LOADS`."""

    def __missing__(self, kind: str) -> Load:
        module = import_module(f"pytest_ldos.measure.load.{_MODULES.get(kind, kind)}")
        return self.setdefault(kind, cast("Load", module.LOADS[kind]))


IMPLEMENTATIONS: Final = _Loads()


def run_load(spec: LoadSpec, site: LoadSite) -> AbstractContextManager[RunningLoad]:
    """Applies a load inside the ``with`` block.

    Raises:
        Unavailable: it cannot be applied on this machine.
        ConfigurationError: its settings cannot be met here: a method, CPUs, a path or publishers that do not exist.
        LoadFailed: it does not start, or the requested load was not reached.
    """
    return IMPLEMENTATIONS[spec.KIND].run(spec, site)


def load_available(spec: LoadSpec, stack: StackSpec) -> Availability:
    """Reports if a load can be applied, as far as known."""
    load = IMPLEMENTATIONS[spec.KIND]
    programs = Availability(True)
    if load.has_nodes and resolve_kind(stack) is not StackKind.ROS2:
        programs = find_modules(_EMBEDDED_PARTS, extra="embedded")
    return load.available(spec, stack) if programs.ok else programs


def in_order(specs: Sequence[LoadSpec]) -> list[LoadSpec]:
    """Sorts loads: limits first, floods last; each load must fit in what the previous ones leave."""
    return sorted(specs, key=lambda spec: list(LOAD_SPECS).index(spec.KIND))


@contextmanager
def apply_loads(specs: Sequence[LoadSpec], site: LoadSite) -> Iterator[list[RunningLoad]]:
    """Applies all loads inside the ``with`` block; they end in reverse order.

    Raises:
        Unavailable, LoadFailed: see `run_load`; loads that were already running have ended.
    """
    with ExitStack() as resources:
        yield [resources.enter_context(run_load(spec, site)) for spec in in_order(specs)]


class RepeatedLoad:
    """A load that is applied to every stack started in a run; see `RunningLoad`."""

    def __init__(
        self, spec: LoadSpec, run: Callable[[LoadSpec, LoadSite], AbstractContextManager[RunningLoad]] = run_load
    ) -> None:
        self.spec = spec
        self._run = run
        self._proofs: list[LoadProof] = []

    @contextmanager
    def applied_to(self, site: LoadSite) -> Iterator[RunningLoad]:
        """Applies the load at a site inside the ``with`` block; raises as `run_load`."""
        with self._run(self.spec, site) as running:
            yield running
        self._proofs.append(running.proof)

    @property
    def proof(self) -> LoadProof:
        """The proof of the site with the lowest applied load; raises `LoadFailed` before the first one."""
        if not self._proofs:
            raise LoadFailed(
                "there is no proof of this load yet: each version gets it while its trials are made",
                remedy="ask for the proof after ldos_trials(…)",
            )
        return min(self._proofs, key=lambda proof: (not proof.shortfall, proof.applied))
