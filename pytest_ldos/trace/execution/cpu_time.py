"""Time that threads spent running, waiting for a CPU and blocked, within given spans."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.trace.execution.end_to_end import Timeline
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.scheduling import RUNNABLE, RUNNING, STATES
from pytest_ldos.trace.execution.thread_keys import dense_codes

Ints = npt.NDArray[np.int64]

_KEY: Final = ["host", "tid"]
_EDGES: Final = (pl.col("start_ns").alias("begin_ns"), pl.col("end_ns"))


def split_spans(states: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """Time for which the thread of each span was running, runnable, blocked, or in an unknown state.

    Args:
        states: result of `build_thread_states`.
        spans: columns ``host`` (name), ``tid`` (the kernel's; equal to `vtid` only outside containers),
            ``begin_ns``, ``end_ns``; one row per span, in any order; spans may overlap.

    Columns, one row per span, in the same order: ``running_ns``, ``runnable_ns``, ``blocked_ns`` and
    ``unknown_ns`` (not covered by kernel events). They are never negative, and their sum is exactly the span.

    Raises:
        ValueError: a span ends before it begins.
    """
    begin, end = _edges(spans)
    line = Timeline.of(states, _KEY)
    totals = line.totals_within(line.place(spans, begin), line.place(spans, end), states["state"].to_physical())
    parts = {f"{name}_ns": totals[number] for number, name in enumerate(STATES)}
    return pl.DataFrame(parts | {"unknown_ns": end - begin - np.sum(totals, axis=0)})


def spans_of_runs(model: ExecutionModel) -> pl.DataFrame:
    """Spans of the callback runs that have an end, for `split_spans` and `cpu_rivals`.

    A thread is identified by host and `vtid`, which equals the kernel's tid outside containers only.

    Columns: ``callback_run``, ``host``, ``tid``, ``begin_ns``, ``end_ns``.
    """
    processes = model.processes.join(model.hosts.select(host="id", host_name="name"), on="host")
    threads = model.threads.join(processes.select("host_name", process="id"), on="process")
    runs = model.callback_runs.drop_nulls("end_ns")
    owned = runs.join(threads.select("host_name", "tid", thread="id"), on="thread", maintain_order="left")
    return owned.select(pl.col("id").alias("callback_run"), pl.col("host_name").alias("host"), "tid", *_EDGES)


def cpu_rivals(states: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """Threads that ran on the CPU for which the thread of each span was waiting while runnable.

    They preempted it, or it waited for them after it was woken or moved.

    Args:
        states, spans: as for `split_spans`.

    Columns, by span, longest first: ``span`` (row number), ``tid``, ``name``, ``ns``. Their sum in
    a span is its ``runnable_ns``, less the time in which no thread is known to have run.

    Raises:
        ValueError: a span ends before it begins.
    """
    begin, end = _edges(spans)
    line = Timeline.of(states, _KEY)
    waits = line.overlaps(spans, begin, end)
    waits = waits.with_columns(states[name].gather(waits["interval"]) for name in ("state", "host", "cpu"))
    waits = waits.filter(pl.col("state") == RUNNABLE)
    runs = _until_next(states.filter(pl.col("state") == RUNNING).select("host", "tid", "cpu", "begin_ns", "end_ns"))
    on_cpu = Timeline.of(runs, ["host", "cpu"])
    held = on_cpu.overlaps(waits, waits["begin_ns"].to_numpy(), waits["end_ns"].to_numpy())
    return (
        held.select(
            span=waits["span"].gather(held["span"]),
            tid=runs["tid"].gather(held["interval"]),
            host=runs["host"].gather(held["interval"]),
            ns=pl.col("end_ns") - pl.col("begin_ns"),
        )
        .group_by("span", "host", "tid")
        .agg(pl.col("ns").sum())
        .join(_names(states), on=["host", "tid"], how="left")
        .sort(["span", "ns", "tid"], descending=[False, True, False])
        .select("span", "tid", "name", "ns")
    )


def _edges(spans: pl.DataFrame) -> tuple[Ints, Ints]:
    begin, end = (spans[name].cast(pl.Int64).to_numpy() for name in ("begin_ns", "end_ns"))
    if np.any(end < begin):
        raise ValueError(f"span {int(np.argmax(end < begin))} ends before it begins")
    return begin, end


def _until_next(runs: pl.DataFrame) -> pl.DataFrame:
    """Runs by CPU and time; where two appear to overlap, the first is cut at the begin of the second."""
    by_time = np.argsort(runs["begin_ns"].to_numpy(), kind="stable")
    cpus = dense_codes(runs["host"].to_physical().to_numpy(), runs["cpu"].cast(pl.Int64).to_numpy())[by_time]
    order = np.argsort(cpus, kind="stable")
    runs, cpus = runs[by_time[order]], cpus[order]
    following = runs["begin_ns"].shift(-1).set(pl.Series(np.append(cpus[1:] != cpus[:-1], True)[: len(runs)]), None)
    return runs.with_columns(end_ns=pl.min_horizontal("end_ns", following))


def _names(states: pl.DataFrame) -> pl.DataFrame:
    """The last name of each thread."""
    return states.group_by(_KEY).agg(pl.col("name").last())
