"""Stages of planning within a segment of a critical path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.critical import Segment, SegmentKind


class PlanningStages:
    """Ends of planning stages on each thread.

    Two sources, both from MoveIt's process: stages that the planner reports, and messages of the pipeline's
    progress topic. A message has no name in the trace, so a pipeline's messages are named by their order, and only
    where a segment has one for each stage: a pipeline that gave up early stays one piece.
    """

    def __init__(self, model: ExecutionModel) -> None:
        self._reported = model.planning_stages.drop_nulls("thread")
        self._pipelines = [
            (each["name"].to_list(), _published(model, each))
            for each in model.pipeline_stages.sort("id").partition_by("process", "topic", maintain_order=True)
        ]

    def split(self, segment: Segment) -> list[Segment]:
        """The parts of a segment on its thread, one to the end of each stage; what follows the last stays as it was.

        Nothing reports the begin of planning: the first part has all that came before the end of the first stage.
        """
        pieces: list[Segment] = []
        begin_ns = segment.begin_ns
        for end_ns, name in sorted(self._ends(segment)):
            subject = name if pieces else f"up to {name}"
            pieces.append(Segment(SegmentKind.PLANNING_STAGE, subject, begin_ns, end_ns, segment.thread))
            begin_ns = end_ns
        return [*pieces, replace(segment, begin_ns=begin_ns)]

    def _ends(self, segment: Segment) -> Iterator[tuple[int, str]]:
        yield from _within(self._reported, segment).select("time_ns", "name").iter_rows()
        for names, published in self._pipelines:
            ended = _within(published, segment)["time_ns"].to_list()
            if len(ended) == len(names):
                yield from zip(ended, names, strict=True)


def _published(model: ExecutionModel, stages: pl.DataFrame) -> pl.DataFrame:
    """Publications of a pipeline's progress."""
    place = stages.select("process", "topic").unique()
    nodes = model.publishers.join(place, on=["process", "topic"], how="semi")
    return model.publications.filter(pl.col("publisher").is_in(nodes["id"].implode())).select("time_ns", "thread")


def _within(ends: pl.DataFrame, segment: Segment) -> pl.DataFrame:
    inside = pl.col("time_ns").is_between(segment.begin_ns, segment.end_ns, closed="right")
    return ends.filter(pl.col("thread") == segment.thread, inside).sort("time_ns", maintain_order=True)
