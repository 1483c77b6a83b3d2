"""Shifts the times of hosts whose clocks disagree."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.schema import ENTITIES, INSTANCES, Schema

_NOT_OF_THIS_CLOCK: Final = frozenset(
    {"source_ns", "timeout_ns", "period_ns", "sim_time_ns", "planned_ns", "cpu_work_ns"}
)
"""Columns that hold durations, or stamps of another clock."""


_LARGEST_NS: Final = 10**18
"""About thirty years."""


def shift_clocks(model: ExecutionModel, offsets_ns: Mapping[str, int]) -> ExecutionModel:
    """The model with offsets added to all times of some hosts; rows keep their places.

    Args:
        offsets_ns: nanoseconds to add, by name of the host.

    Raises:
        ConfigurationError: no host has this name.
    """
    known = set(model.hosts["name"])
    for name, offset_ns in offsets_ns.items():
        if abs(offset_ns) > _LARGEST_NS:
            raise ConfigurationError(f"{offset_ns} ns is no offset of a clock", remedy="give nanoseconds below 10^18")
        if name not in known:
            raise ConfigurationError(f"no host {name!r} in the trace", remedy=f"it has {', '.join(sorted(known))}")
    offset = pl.col("name").replace_strict(offsets_ns, default=0, return_dtype=pl.Int64)
    offsets = model.hosts.select(host="id", offset=offset)
    by_process = model.processes.select("host", process="id").join(offsets, on="host").select("process", "offset")
    by_thread = model.threads.select("process", thread="id").join(by_process, on="process").select("thread", "offset")
    frames = model.frames()
    schemas = {**ENTITIES, **INSTANCES}
    moved: dict[str, Any] = {
        name: _moved(frame, schemas[name], by_process, by_thread) for name, frame in frames.items()
    }
    return dataclasses.replace(model, **moved)


def _moved(frame: pl.DataFrame, schema: Schema, by_process: pl.DataFrame, by_thread: pl.DataFrame) -> pl.DataFrame:
    times = [name for name in schema if name.endswith("_ns") and name not in _NOT_OF_THIS_CLOCK]
    if not times:
        return frame
    owner, offsets = ("thread", by_thread) if "thread" in schema else ("process", by_process)
    joined = frame.join(offsets, on=owner, how="left", maintain_order="left")
    return joined.with_columns(pl.col(times) + pl.col("offset").fill_null(0)).drop("offset")
