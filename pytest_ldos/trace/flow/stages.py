"""Stages of planning within a segment of a critical path."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.critical import Segment, SegmentKind


def split_by_stages(model: ExecutionModel, segment: Segment) -> list[Segment]:
    """Parts of a segment on its thread, one to the end of each stage; what follows the last stays as it was.

    Nothing reports the begin of planning: the first part has all that came before the end of the first stage.
    """
    inside = pl.col("time_ns").is_between(segment.begin_ns, segment.end_ns, closed="right")
    ended = model.planning_stages.filter(pl.col("thread") == segment.thread, inside)
    parts: list[Segment] = []
    begin_ns = segment.begin_ns
    for end_ns, name in ended.select("time_ns", "name").iter_rows():
        subject = name if parts else f"up to {name}"
        parts.append(Segment(SegmentKind.PLANNING_STAGE, subject, begin_ns, end_ns, segment.thread))
        begin_ns = end_ns
    return [*parts, replace(segment, begin_ns=begin_ns)]
