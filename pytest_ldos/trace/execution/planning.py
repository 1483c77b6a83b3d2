"""Planning by MoveIt: the stages of each pipeline, and the ends of those that the planner itself reports.

Tracepoints: ``ldos:planning_pipeline``, ``ldos:planning_stage``, both from the planner of `ldos_planner`.
"""

from __future__ import annotations

import polars as pl

from pytest_ldos.base.tracepoints import Marker
from pytest_ldos.trace.execution.columns import frame_of
from pytest_ldos.trace.execution.model import Frames
from pytest_ldos.trace.execution.observed import Events, Observed
from pytest_ldos.trace.execution.schema import ENTITIES, INSTANCES


def build_planning(observed: Observed) -> Frames:
    """Tables of the pipelines' stages and of the stages that ended. A pipeline's last report counts."""
    return {
        "pipeline_stages": _pipelines(observed.events(Marker.PLANNING_PIPELINE)),
        "planning_stages": _stages(observed.events(Marker.PLANNING_STAGE)),
    }


def _pipelines(events: Events) -> pl.DataFrame:
    reported = zip(events.process.tolist(), events.texts("topic"), events.texts("stages"), strict=True)
    stages = {(process, topic): text.splitlines() for process, topic, text in reported}
    rows = [(*place, position, name) for place, names in stages.items() for position, name in enumerate(names)]
    process, topic, position, name = ([row[column] for row in rows] for column in range(4))
    columns = {"process": process, "topic": topic, "position": position, "name": name}
    return frame_of(ENTITIES["pipeline_stages"], columns)


def _stages(events: Events) -> pl.DataFrame:
    ended_ns = events.times_ns - events["ago_ns"]
    columns = {"time_ns": ended_ns, "thread": events.thread, "name": events.texts("stage")}
    return frame_of(INSTANCES["planning_stages"], columns).sort("time_ns", maintain_order=True)
