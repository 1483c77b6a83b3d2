"""The common interface of disturbances, and their proofs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pytest_ldos.base.paths import BUILT_IN_PATHS, PathSpec
from pytest_ldos.host.availability import Availability
from pytest_ldos.record.protocol import Recorder
from pytest_ldos.scenario.loads.spec import LoadSpec
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.words import StackKind


@dataclass(frozen=True, kw_only=True)
class LoadProof:
    """The load that was really applied, measured while it ran.

    Attributes:
        kind: the kind of load, e.g. ``dds_flood``.
        seconds: duration of the measurement.
        shortfall: why this is not the requested load; empty if it is.
    """

    kind: str
    seconds: float
    shortfall: str

    @property
    def applied(self) -> float:
        """Amount applied, to be compared with other proofs of the same load."""
        return self.seconds

    def describe(self) -> str:
        """Returns a line for people."""
        return self.kind


class RunningLoad(Protocol):
    """A load that is being applied."""

    @property
    def spec(self) -> LoadSpec:
        """The requested load."""

    @property
    def proof(self) -> LoadProof:
        """The load applied so far, or, after the end, in total."""


def _nobody() -> list[int]:
    return []


@dataclass(frozen=True)
class LoadSite:
    """The place where a load is applied: a stack and its surroundings.

    Attributes:
        domain: DDS domain of the stack.
        recorder: recorder of the stack; loads that are ROS nodes are recorded, too.
        log_directory: folder for the logs of the load's processes.
        kind, has_simulated_clock: of the stack, as in `StackInfo`.
        environment: variables for processes that use the stack's domain and middleware.
        pids: returns the stack's present processes.
        paths: the known causal paths.
        beside: all loads applied there.
    """

    domain: int
    recorder: Recorder
    log_directory: Path
    kind: StackKind = StackKind.EMBEDDED
    has_simulated_clock: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    pids: Callable[[], list[int]] = _nobody
    stack: StackSpec = field(default_factory=StackSpec)
    paths: Sequence[PathSpec] = BUILT_IN_PATHS
    beside: Sequence[LoadSpec] = ()


def _always(spec: LoadSpec, stack: StackSpec) -> Availability:
    return Availability(True)


@dataclass(frozen=True)
class Load:
    """The implementation of a kind of load.

    Attributes:
        run: applies it for as long as its context lasts.
        available: reports if it can be applied on this machine, given the stack.
        package: package of the ROS workspace whose programs it runs beside a ROS 2 stack; empty if it runs none.
        proof: type of its proof.
    """

    run: Callable[[Any, LoadSite], AbstractContextManager[RunningLoad]]
    available: Callable[[Any, StackSpec], Availability] = _always
    package: str = ""
    proof: type[LoadProof] = LoadProof


def proof_to_dict(proof: LoadProof) -> dict[str, Any]:
    """Returns a proof as plain values, with its summary."""
    return {**vars(proof), "summary": proof.describe()}
