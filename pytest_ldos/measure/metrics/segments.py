"""Segments of the causal paths of a trial, and compliance with deadlines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.base.paths import PathSpec
from pytest_ldos.base.tracepoints import Phase
from pytest_ldos.scenario.metrics import DeadlineSpec
from pytest_ldos.trace.execution.model import TrialSpan
from pytest_ldos.trace.flow.critical import CriticalPaths, SegmentKind, break_down
from pytest_ldos.trace.flow.graph import FlowGraph
from pytest_ldos.trace.flow.lineage import PathInstances, find_path

LATENCY: Final = "latency"
"""Name of a path's total latency, listed with its segments."""

SegmentsNs = Mapping[str, Mapping[str, int]]
"""By path, then by segment (``KIND: SUBJECT``): the median over a trial's passages, nanoseconds."""

_SEPARATOR: Final = ": "


def kind_of(segment: str) -> SegmentKind | None:
    """The kind in a segment's name; ``None`` for `LATENCY` and for unknown kinds."""
    kind, _, _ = segment.partition(_SEPARATOR)
    return SegmentKind(kind) if kind in set(SegmentKind) else None


class PathSegments:
    """Segments of all passages in a trace, evaluated per trial."""

    def __init__(
        self, flow: FlowGraph, paths: Sequence[PathSpec], *, thread_states: pl.DataFrame | None = None
    ) -> None:
        critical = CriticalPaths(flow)
        found = [each for each in (find_path(flow, path) for path in paths) if len(each)]
        parts = [break_down(flow, each, thread_states=thread_states, critical=critical) for each in found]
        self._paths = [(each, _by_segment(each, segments)) for each, segments in zip(found, parts, strict=True)]

    def of(self, trial: TrialSpan) -> dict[str, dict[str, int]]:
        """Medians over the passages that ended while the goal was active, by path; paths without any are left out."""
        medians = {}
        for found, segments in self._paths:
            own = segments.filter(pl.col("passage").is_in(passages_of(found, trial).implode()))
            # A missing segment counts as 0.
            wide = own.pivot("segment", index="passage", values="duration_ns").fill_null(0).drop("passage")
            medians[found.path.name] = {
                name: round(np.median(each.to_numpy())) for name, each in wide.to_dict().items()
            }
        return {name: found for name, found in medians.items() if found}


def _by_segment(instances: PathInstances, segments: pl.DataFrame) -> pl.DataFrame:
    """Columns: `passage`, `segment`, `duration_ns`; parts of the same segment are summed within each passage."""
    segment = pl.concat_str("kind", "subject", separator=_SEPARATOR)
    parts = segments.select("passage", "duration_ns", segment=segment)
    whole = instances.table.select(
        passage=pl.int_range(pl.len(), dtype=pl.Int32), duration_ns="latency_ns", segment=pl.lit(LATENCY)
    )
    both = pl.concat([whole.select(parts.columns), parts])
    return both.group_by("passage", "segment", maintain_order=True).agg(pl.col("duration_ns").sum())


def passages_of(instances: PathInstances, trial: TrialSpan) -> pl.Series:
    """Rows of the passages that ended while the goal was active."""
    numbered = instances.table.with_columns(passage=pl.int_range(pl.len(), dtype=pl.Int32))
    if instances.path.of_phases:
        return numbered.filter(pl.col("goal_id") == trial.goal_id)["passage"]
    begin_ns, end_ns = trial.phases.get(trial.first_phase), trial.phases.get(Phase.RESULT, trial.end_ns)
    if begin_ns is None or end_ns is None:
        return pl.Series(dtype=pl.Int32)
    return numbered.filter(pl.col("end_ns").is_between(begin_ns, end_ns))["passage"]


@dataclass(frozen=True)
class Kept:
    """Passages of a path that ended during a trial.

    Attributes:
        passages: number of passages.
        in_time: number within the deadline.
    """

    passages: int
    in_time: int

    @property
    def share(self) -> float:
        """Fraction of passages in time; 0 without passages."""
        return self.in_time / self.passages if self.passages else 0.0


class Deadlines:
    """Compliance with a scenario's deadlines, evaluated per trial."""

    def __init__(self, flow: FlowGraph, paths: Sequence[PathSpec], deadlines: Sequence[DeadlineSpec]) -> None:
        by_name = {path.name: path for path in paths}
        self._found: list[tuple[DeadlineSpec, PathInstances]] = [
            (each, find_path(flow, by_name[each.path])) for each in deadlines
        ]

    def of(self, trial: TrialSpan) -> dict[str, Kept]:
        """Compliance with each deadline while the goal was active, by path."""
        kept = {}
        for deadline, instances in self._found:
            latencies_ns = instances.table["latency_ns"].gather(passages_of(instances, trial))
            kept[deadline.path] = Kept(len(latencies_ns), int((latencies_ns <= deadline.ns).sum()))
        return kept
