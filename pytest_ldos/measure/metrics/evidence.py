"""Metrics of a place: calls, page faults and waits in control cycles or runs of a callback, by the calling function.

Sources: LTTng's wrappers of the C library and of mutexes; perf. A control cycle lasts from one ``ldos:control_cycle``
to the next of its thread. A value is the mean of the place's runs in a trial. Without a recording, there is none.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Final

import polars as pl

from pytest_ldos.base.errors import ConfigurationError, suggest
from pytest_ldos.base.series import Invalid, Missing
from pytest_ldos.base.text import one_line
from pytest_ldos.host.availability import run_program
from pytest_ldos.measure.metrics.model import CALLS, PART, Measurement, TrialContext, Window
from pytest_ldos.record.lttng import WRAPPERS
from pytest_ldos.record.perf import SWITCHES_FOLDER
from pytest_ldos.scenario.metrics import CONTROL_LOOP, EVIDENCE, LIBRARIES, MetricKind, MetricSpec
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.observed import OwnEvents
from pytest_ldos.trace.execution.scheduling import threads_of_hosts
from pytest_ldos.trace.flow.graph import Names

IN_RUNS, RUNS, RUNS_WITH = "in_runs", "runs", "runs_with_any"  # details: how many there were, in how many runs
_SAMPLE: Final = r"\s(?<pid>\d+)/(?<tid>\d+)\s+(?<time>\d+\.\d+):\s+(?<event>\S+):\s*\n\s+\w+ (?<by>[^\n@(]*)"


def runs_of(place: str, model: ExecutionModel) -> pl.DataFrame:
    """Runs of a place in a whole trace. Columns: `host`, `pid`, `tid`, `begin_ns`, `end_ns`."""
    if place == CONTROL_LOOP:
        cycles = model.control_cycles.select("thread", begin_ns="time_ns").sort("begin_ns")
        runs = cycles.with_columns(end_ns=pl.col("begin_ns").shift(-1).over("thread"))
    else:
        names = Names(model)
        ids = [each for each in model.callbacks["id"] if names.callback(each) == place]
        runs = model.callback_runs.filter(pl.col("callback").is_in(ids)).select("thread", "end_ns", begin_ns="start_ns")
    return runs.drop_nulls("end_ns").join(threads_of_hosts(model), on="thread").drop("thread").sort("begin_ns")


def pids_of(specs: Iterable[MetricSpec], model: ExecutionModel, *, is_required: bool) -> set[int]:
    """Processes with the places of metrics; raises `ConfigurationError` for a required place that has not run."""
    names, found = Names(model), set[int]()
    for spec in specs:
        found |= (pids := set(runs_of(spec.place, model)["pid"]))
        if is_required and not pids:
            ran = sorted({names.callback(each) for each in model.callback_runs["callback"].unique()})
            remedy = "load ldos_control_probe/ControlProbe" if spec.place == CONTROL_LOOP else suggest(spec.place, ran)
            raise ConfigurationError(f"metric '{spec}': no '{spec.place}' has run so far", remedy=remedy)
    return found


def measure_place(spec: MetricSpec, context: TrialContext, window: Window) -> Measurement:
    own, runs = context.trace_flow.own, runs_of(spec.place, context.model)
    runs = runs.filter(pl.col("begin_ns") >= window[0], pl.col("end_ns") <= window[1]).with_row_index("run")
    if own is None or runs.is_empty():
        return Measurement(context.not_seen(f"{spec.place} did not run in the trial"))
    is_sampled = spec.kind in (MetricKind.FAULTS, MetricKind.BLOCKED)
    found = (_samples if is_sampled else _calls)(spec, own, set(runs["pid"]))
    if not isinstance(found, pl.DataFrame):
        return Measurement(found)
    begun = runs.select("host", "tid", "run", "end_ns", time_ns="begin_ns")
    within = found.sort("time_ns").join_asof(begun, on="time_ns", by=["host", "tid"], check_sortedness=False)
    within = within.filter(pl.col("time_ns") < pl.col("end_ns"))
    if spec.kind is MetricKind.BLOCKED and spec.place == CONTROL_LOOP:
        is_last = pl.int_range(pl.len()).over("run") == pl.len().over("run") - 1
        within = within.filter(~(is_last & pl.col("by").str.contains("nanosleep")))
    by = within["by"] if is_sampled else _functions(within, own)
    counts = float(len(within)), float(len(runs)), float(within["run"].n_unique())
    parts = {f"{PART}{name}": count / len(runs) for name, count in by.value_counts(sort=True).iter_rows()}
    return Measurement(counts[0] / counts[1], dict(zip((IN_RUNS, RUNS, RUNS_WITH), counts, strict=True)) | parts, CALLS)


@lru_cache(maxsize=8)
def _recorded(own: OwnEvents, provider: str) -> pl.DataFrame:
    names = {name for events in EVIDENCE.values() for name in events if name.startswith(f"{provider}:")}
    found = [own.placed(name, "ip").with_columns(name=pl.lit(name)) for name in sorted(names)]
    return pl.concat(found, how="vertical_relaxed")


def _calls(spec: MetricSpec, own: OwnEvents, pids: set[int]) -> pl.DataFrame | Missing:
    """Calls of a kind; missing if a process has no wrapper, or none of its calls was recorded."""
    provider = EVIDENCE[spec.kind][0].partition(":")[0]
    wrapper, calls = WRAPPERS[f"{provider}:*"].partition(".")[0], _recorded(own, provider)
    libraries = own.placed(LIBRARIES, "path").filter(pl.col("path").cast(pl.String).str.contains(wrapper))
    if without := pids - set(libraries["pid"]):
        return Missing(f"process {min(without)} was started without {wrapper} in LD_PRELOAD: its calls are unknown")
    if silent := pids - set(calls["pid"]):
        return Missing(f"no call in process {min(silent)} was recorded: it may have functions of its own for them")
    return calls.filter(pl.col("name").is_in(EVIDENCE[spec.kind]))


def _functions(calls: pl.DataFrame, own: OwnEvents) -> pl.Series:
    """Function and library of each call, by binutils' addr2line, or its place in the library."""
    libraries = own.placed(LIBRARIES, "baddr", "memsz", "path", "is_pic").cast({"path": pl.String})
    is_within = pl.col("ip").is_between(pl.col("baddr") + 1, pl.col("baddr") + pl.col("memsz"))
    sites = calls.join(libraries.drop("time_ns", "host", "tid"), on="pid").filter(is_within).unique(["pid", "ip"])
    by = {(pid, ip): f"{ip:#x}" for pid, ip in calls.select("pid", "ip").iter_rows()}
    for (path,), part in sites.group_by("path"):
        places = [f"{at:#x}" for at in part["ip"] - 1 - part["baddr"] * part["is_pic"]]  # within the calls
        command = ["addr2line", "-f", "-C", "-e", str(path)]
        lines = run_program(command, given="\n".join(places)).stdout.splitlines() if shutil.which("addr2line") else []
        for pid, ip, at, name in zip(part["pid"], part["ip"], places, lines[::2] or places, strict=False):
            by[pid, ip] = one_line(f"{at if name == '??' else name} ({Path(str(path)).name})")
    return pl.Series("by", [by[each] for each in calls.select("pid", "ip").iter_rows()], pl.String)


def _samples(spec: MetricSpec, own: OwnEvents, pids: set[int]) -> pl.DataFrame | Missing | Invalid:
    """Events of perf with column `by`; missing if it did not follow a process."""
    files, first = sorted((own.trace.directory / SWITCHES_FOLDER).glob("*.txt")), own.trace.traces[0]
    texts = [file.read_text("utf-8", errors="replace").split("\n\n") for file in files]
    if without := pids - {int(pid) for text in texts for pid in text[0].split(",") if pid.isdecimal()}:
        return Missing(f"perf did not follow process {min(without)}")
    samples = pl.Series("text", [each for text in texts for each in text[1:]], pl.String)
    if samples.str.contains("PERF_RECORD_LOST").any():
        return Invalid("perf lost records")
    found = samples.str.extract_groups(_SAMPLE).struct.unnest()
    found = found.filter(pl.col("event").str.contains(EVIDENCE[spec.kind][0].partition(":")[2], literal=True))
    time_ns = pl.col("time").str.replace(".", "", literal=True).cast(pl.Int64) + first.clock_offset_ns
    return found.with_columns(pl.col("pid", "tid").cast(pl.Int64), time_ns=time_ns, host=pl.lit(first.host))
