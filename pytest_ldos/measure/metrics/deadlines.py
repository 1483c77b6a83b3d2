"""Deadline compliance of a trial's passages along a path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ldos.base.paths import PathSpec
from pytest_ldos.measure.metrics.segments import passages_of
from pytest_ldos.scenario.deadlines import DeadlineSpec
from pytest_ldos.trace.execution.model import TrialSpan
from pytest_ldos.trace.flow.graph import FlowGraph
from pytest_ldos.trace.flow.paths import PathInstances, find_path


@dataclass(frozen=True)
class Kept:
    """Passages of a path that ended during a trial.

    Attributes:
        passages: all of them.
        in_time: those within the deadline.
    """

    passages: int
    in_time: int

    @property
    def share(self) -> float:
        """Fraction of passages in time; 0 if there was none."""
        return self.in_time / self.passages if self.passages else 0.0


class Deadlines:
    """Deadlines of a scenario with the passages of a trace, evaluated per trial."""

    def __init__(self, flow: FlowGraph, paths: Sequence[PathSpec], deadlines: Sequence[DeadlineSpec]) -> None:
        by_name = {path.name: path for path in paths}
        self._found: list[tuple[DeadlineSpec, PathInstances]] = [
            (each, find_path(flow, by_name[each.path])) for each in deadlines
        ]

    def of(self, trial: TrialSpan) -> dict[str, Kept]:
        """Compliance with each deadline while the goal was served, by path."""
        return {deadline.path: _kept(deadline, instances, trial) for deadline, instances in self._found}


def _kept(deadline: DeadlineSpec, instances: PathInstances, trial: TrialSpan) -> Kept:
    latencies_ns = instances.table["latency_ns"].gather(passages_of(instances, trial))
    return Kept(len(latencies_ns), int((latencies_ns <= deadline.ns).sum()))
