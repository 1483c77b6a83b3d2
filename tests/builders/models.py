"""Execution models made by hand, as far as a test needs them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from pytest_ldos.trace.ctf.stats import ReadStats
from pytest_ldos.trace.execution.columns import frame_of
from pytest_ldos.trace.execution.model import ENTITIES, INSTANCES, ExecutionModel, TrialSpan

EMPTY = {name: pl.DataFrame(schema=dict(schema)) for name, schema in {**ENTITIES, **INSTANCES}.items()}
EMPTY["link_annotations"] = EMPTY["link_annotations"].with_columns(
    pl.col("subscriptions", "publishers").cast(pl.List(pl.Int32))
)


def empty_model(stats: ReadStats | None = None) -> ExecutionModel:
    return ExecutionModel(**EMPTY, stats=stats or ReadStats(()), unknown={}, unpaired={}, missing_events=())


def changed(
    model: ExecutionModel,
    *,
    trials: Sequence[TrialSpan] | None = None,
    control_cycles: Any = None,
    sim_steps: Any = None,
    sim_times_ns: Any = None,
    publications: Mapping[str, Sequence[int]] | None = None,
    stats: ReadStats | None = None,
) -> ExecutionModel:
    """The model with other trials, times of markers, or publications by topic."""
    frames: dict[str, Any] = {}
    if trials is not None:
        frames |= _trial_frames(trials)
    if control_cycles is not None:
        frames["control_cycles"] = _marker("control_cycles", control_cycles, {})
    if sim_steps is not None:
        own = np.arange(len(sim_steps)) * 1_000_000 if sim_times_ns is None else sim_times_ns
        frames["sim_steps"] = _marker("sim_steps", sim_steps, {"sim_time_ns": np.asarray(own, dtype=np.int64)})
    if publications is not None:
        frames |= _publication_frames(publications)
    if stats is not None:
        frames["stats"] = stats
    return dataclasses.replace(model, **frames)


def _marker(table: str, times_ns: Any, given: Mapping[str, Any]) -> pl.DataFrame:
    count = len(times_ns)
    blank = {name: np.zeros(count, dtype=np.int64) for name in INSTANCES[table]}
    return frame_of(INSTANCES[table], {**blank, "time_ns": np.asarray(times_ns, dtype=np.int64), **given})


def _trial_frames(trials: Sequence[TrialSpan]) -> dict[str, pl.DataFrame]:
    spans = {
        "goal_id": [trial.goal_id for trial in trials],
        "scenario": [trial.scenario for trial in trials],
        "index": [trial.index for trial in trials],
        "begin_ns": [trial.begin_ns for trial in trials],
        "end_ns": [trial.end_ns for trial in trials],
        "error_code": [trial.error_code for trial in trials],
        "planned_ns": [trial.plan and trial.plan.duration_ns for trial in trials],
        "points": [trial.plan and trial.plan.points for trial in trials],
        "cpu_work_ns": [trial.cpu_work_ns for trial in trials],
        "thread": [None] * len(trials),
    }
    phases = [(trial.goal_id, phase.value, at, None) for trial in trials for phase, at in trial.phases.items()]
    columns = {name: [row[at] for row in phases] for at, name in enumerate(INSTANCES["phases"])}
    requests = [each for trial in trials for each in trial.plan_requests]
    own = {name: [getattr(each, name) for each in requests] for name in ("begin_ns", "end_ns", "cpu_work_ns")}
    unknown = {name: [None] * len(requests) for name in INSTANCES["plan_requests"]}
    return {
        "plan_requests": frame_of(INSTANCES["plan_requests"], unknown | own),
        "trial_spans": frame_of(INSTANCES["trial_spans"], spans),
        "phases": frame_of(INSTANCES["phases"], columns),
    }


def _publication_frames(publications: Mapping[str, Sequence[int]]) -> dict[str, pl.DataFrame]:
    topics = list(publications)
    pairs = sorted((at, topics.index(topic)) for topic in topics for at in publications[topic])
    none = [None] * len(topics)
    return {
        "publishers": frame_of(
            ENTITIES["publishers"],
            {**dict.fromkeys(ENTITIES["publishers"], none), "topic": topics, "id": list(range(len(topics)))},
        ),
        "publications": frame_of(
            INSTANCES["publications"],
            {
                **dict.fromkeys(INSTANCES["publications"], [None] * len(pairs)),
                "id": list(range(len(pairs))),
                "time_ns": [at for at, _ in pairs],
                "publisher": [publisher for _, publisher in pairs],
            },
        ),
    }
