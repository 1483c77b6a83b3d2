"""A disturbance, and the proof of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pytest_ldos.recording.protocol import Recorder
from pytest_ldos.scenario.loads import LoadSpec
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.paths import BUILT_IN_PATHS, PathSpec


@dataclass(frozen=True, kw_only=True)
class LoadProof:
    """What was really applied, measured while it was.

    Attributes:
        kind: which load, e.g. ``dds_flood``.
        seconds: how long it was measured.
        shortfall: why this is not the load that was asked for; empty where it is.
    """

    kind: str
    seconds: float
    shortfall: str

    @property
    def applied(self) -> float:
        """How much was applied, to be held against other proofs of the same load."""
        return self.seconds

    def describe(self) -> str:
        """One line for people."""
        return self.kind


class RunningLoad(Protocol):
    """A load that is being applied."""

    @property
    def spec(self) -> LoadSpec:
        """What was asked for."""

    @property
    def proof(self) -> LoadProof:
        """What was applied so far, or, after the end, all in all."""


def _nobody() -> list[int]:
    return []


@dataclass(frozen=True)
class LoadSite:
    """Where a load is applied: beside which stack.

    Attributes:
        domain: DDS domain of the stack.
        recorder: what records the stack; loads that are ROS nodes are recorded too.
        log_directory: for the logs of the load's processes.
        stack_kind: ``embedded`` or ``ros2…``, as `StackInfo` has it.
        environment: variables of processes that are to be on the stack's domain, with its middleware.
        pids: the stack's processes, as they are when it is called.
        paths: causal paths that are known.
        beside: what else is applied there.
    """

    domain: int
    recorder: Recorder
    log_directory: Path
    stack_kind: str = "embedded"
    environment: Mapping[str, str] = field(default_factory=dict)
    pids: Callable[[], list[int]] = _nobody
    stack: StackSpec = field(default_factory=StackSpec)
    paths: Sequence[PathSpec] = BUILT_IN_PATHS
    beside: Sequence[LoadSpec] = ()


def proof_to_dict(proof: LoadProof) -> dict[str, Any]:
    """A proof as plain values, with its summary."""
    return {**vars(proof), "summary": proof.describe()}
