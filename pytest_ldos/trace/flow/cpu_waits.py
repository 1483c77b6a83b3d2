"""Splits off the part of each segment that its thread spent waiting for a CPU, from kernel events."""

from __future__ import annotations

import polars as pl

from pytest_ldos.trace.execution.cpu_time import split_spans
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.critical import SegmentKind


def split_cpu_waits(model: ExecutionModel, segments: pl.DataFrame, thread_states: pl.DataFrame) -> pl.DataFrame:
    """Adds a *CPU wait* after each segment with the part of its time in which its thread was runnable.

    Both keep the begin and end of the whole segment; their durations sum to its duration. The thread of a
    transport segment is the receiver's: from its wakeup until it runs, it waits for a CPU.

    Args:
        segments: result of `break_down`.
        thread_states: result of `build_thread_states`.
    """
    hosts = model.hosts.select(host_name="name", host="id")
    owners = model.processes.select("host", process="id").join(hosts, on="host").select("process", "host_name")
    threads = model.threads.select("process", "tid", thread="id").join(owners, on="process")
    names = threads.select("thread", "tid", host="host_name")
    placed = segments.join(names, on="thread", how="left", maintain_order="left")
    spans = placed.filter(pl.col("tid").is_not_null() & (pl.col("end_ns") >= pl.col("begin_ns")))
    runnable = split_spans(thread_states, spans.select("host", "tid", "begin_ns", "end_ns"))["runnable_ns"]
    waited = spans.select("passage", "position").with_columns(runnable=runnable)
    whole = segments.join(waited, on=["passage", "position"], how="left").with_columns(pl.col("runnable").fill_null(0))
    rest = whole.with_columns(duration_ns=pl.col("duration_ns") - pl.col("runnable"))
    waits = whole.with_columns(kind=pl.lit(SegmentKind.CPU_WAIT.value), duration_ns="runnable")
    both = pl.concat([rest, waits]).filter(pl.col("duration_ns") != 0).drop("runnable")
    ordered = both.sort("passage", "position", maintain_order=True)
    return ordered.with_columns(position=pl.int_range(pl.len(), dtype=pl.Int32).over("passage"))
