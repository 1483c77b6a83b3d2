"""Trials in pytest-benchmark's JSON and in OMPL's benchmark log, and events in the form of ROS 2's `tracetools_read`.

pytest-benchmark's format has neither unit nor direction: its readers take each mean for seconds (lower is better), and
each ``ops`` for iterations per second. Other metrics are left out; `left_out_of_benchmarks` names them.

Reference: ``src/extract.ts`` of github-action-benchmark, ``adapters/python/pytest.rs`` of bencher; of OMPL,
``Benchmark::saveResultsToStream`` and ``ompl_benchmark_statistics.py``.
"""

from __future__ import annotations

import json
import math
import platform
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise, repeat
from typing import Any, Final, overload

import numpy as np

from pytest_ldos.base.series import Better, Series
from pytest_ldos.base.text import SECONDS_OF, one_line
from pytest_ldos.host.checkout import CHANGED, is_changed
from pytest_ldos.measure.metrics.latency import T1
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import Trial, TrialSet, sources_of
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.trace.ctf.read import Column, DecodedTrace, EventTable


def render_benchmark_json(measured: Sequence[tuple[TrialSet, Mapping[str, Series]]]) -> str:
    """JSON text of all scenarios of a run, each given as its trials and the series of their metrics."""
    runs = [trials for trials, _ in measured]
    host = runs[0].fingerprint if runs else None
    document = {
        "machine_info": {
            "node": host.hostname if host else platform.node(),
            "machine": platform.machine(),
            "system": platform.system(),
            "release": host.kernel if host else platform.release(),
            "python_version": platform.python_version(),
            "cpu": {"brand_raw": host.cpu_model if host else "", "count": host.cores if host else 0},
            "ldos_host_class": host.host_class if host else "",
        },
        "commit_info": {
            "id": runs[0].commit.removesuffix(CHANGED) if runs else "",
            "dirty": any(is_changed(trials.commit) for trials in runs),
        },
        "benchmarks": [
            _benchmark(trials, metric, series[metric.name])
            for trials, series in measured
            for metric in trials.metrics
            if _is_duration(series[metric.name])
        ],
        "datetime": datetime.now(UTC).isoformat(),
        "version": "5.1.0",
    }
    return json.dumps(document, indent=4, allow_nan=False) + "\n"


def left_out_of_benchmarks(measured: Sequence[tuple[TrialSet, Mapping[str, Series]]]) -> list[str]:
    """Metrics that the format cannot hold, with their units (``rate_scan [Hz]``), each once."""
    named = {
        f"{metric.name} [{metric.unit}]" if metric.unit else metric.name: None
        for trials, series in measured
        for metric in trials.metrics
        if series[metric.name].finite and not _is_duration(series[metric.name])
    }
    return list(named)


def _is_duration(series: Series) -> bool:
    """True if all values are positive durations and lower is better, so that the inverse is a rate of iterations."""
    return series.unit in SECONDS_OF and series.better is Better.LOWER and math.fsum(series.finite) > 0


def _benchmark(trials: TrialSet, metric: Metric, series: Series) -> dict[str, Any]:
    name = f"{trials.scenario}[{series.name}]"
    sources = sorted(sources_of(trials, metric), key=lambda source: source.name)
    return {
        "group": trials.scenario,
        "name": name,
        "fullname": f"ldos::{name}",
        "params": None,
        "param": None,
        "extra_info": {
            "metric": metric.name,
            "unit": "s",
            "stack": trials.stack,
            "censored": len(series) - len(series.finite),
            "sources": [source.name for source in sources],
            "approximate": any(source.is_approximate for source in sources),
        },
        "options": {"disable_gc": False, "timer": "lttng", "min_rounds": trials.spec.trials, "warmup": False},
        "stats": _stats([value * SECONDS_OF[metric.unit] for value in series.finite]),
    }


def _stats(data: list[float]) -> dict[str, Any]:
    ordered = sorted(data)
    mean = statistics.fmean(data)
    spread = statistics.stdev(data) if len(data) > 1 else 0.0
    low, middle, high = statistics.quantiles(data, n=4, method="inclusive") if len(data) > 1 else ordered * 3
    inter_quartile = high - low
    fences = low - 1.5 * inter_quartile, high + 1.5 * inter_quartile
    inside = [value for value in ordered if fences[0] <= value <= fences[1]]
    ld15, hd15 = inside[0], inside[-1]
    far = sum(1 for value in data if abs(value - mean) > spread)
    outside = sum(1 for value in data if not ld15 <= value <= hd15)
    return {
        "min": ordered[0],
        "max": ordered[-1],
        "mean": mean,
        "stddev": spread,
        "rounds": len(data),
        "median": middle,
        "iqr": inter_quartile,
        "q1": low,
        "q3": high,
        "iqr_outliers": outside,
        "stddev_outliers": far,
        "outliers": f"{far};{outside}",
        "ld15iqr": ld15,
        "hd15iqr": hd15,
        "ops": 1 / mean,
        "total": math.fsum(data),
        "data": data,
        "iterations": 1,
    }


def render_ompl_logs(trials: TrialSet) -> dict[str, str]:
    """Logs of OMPL's benchmarks by name of the problem, because a log has one; failed plans have no path.

    A word has no spaces there, so that other signs than letters, digits and ``.-`` become ``_``.
    """
    return {
        name: "\n".join(_ompl_log(trials, name)) + "\n" for name in dict.fromkeys(each.goal for each in trials.trials)
    }


def _ompl_log(trials: TrialSet, problem: str) -> Iterator[str]:
    plan, host = trials.spec.stack.stimuli.plan, trials.fingerprint
    runs = [each for each in trials.trials if each.goal == problem]
    others = [each for each in trials.metrics if each.name != T1.name]
    times_s = [None if (found := _number(each, T1)) is None else found * SECONDS_OF[T1.unit] for each in runs]
    yield f"pytest-ldos version {_word(trials.commit or 'unknown')}"
    yield f"Experiment {_word(problem)}"
    yield f"Running on {_word(host.hostname)}"
    yield f"Starting at {trials.started_at}"
    yield from ("<<<|", one_line(trials.stack), "|>>>", "<<<|", one_line(host.cpu_model), "|>>>")
    yield "0 is the random seed"
    yield f"{plan.time_limit_s:g} seconds per run"
    yield "0 MB per run"
    yield f"{len(runs)} runs per planner"
    yield f"{math.fsum(filter(None, times_s)):g} seconds spent to collect the data"
    yield from ("1 enum type", f"outcome|{'|'.join(OutcomeClass)}", "1 planners", _word(plan.planner or "default"))
    yield from ("0 common properties", f"{3 + len(others)} properties for each run")
    yield from ("time REAL", "solved BOOLEAN", "outcome ENUM")
    yield from (f"{_word(f'{each.name} {each.unit}'.strip())} REAL" for each in others)
    yield f"{len(runs)} runs"
    for run, time_s in zip(runs, times_s, strict=True):
        outcome = [*OutcomeClass].index(run.outcome)
        values = (time_s, int(run.succeeded), outcome, *(_number(run, each) for each in others))
        yield "".join("; " if value is None else f"{value!r}; " for value in values)
    yield "."


def _number(trial: Trial, metric: Metric) -> float | None:
    found = trial.measurements.get(metric.name)
    return None if found is None else found.number


def _word(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "_", text) or "_"


DictEvent = dict[str, Any]

_LEFT_OUT: Final = frozenset({
    "content_size", "events_discarded", "id", "packet_size", "packet_seq_num", "stream_id", "stream_instance_id",
    "timestamp_end", "timestamp_begin", "magic", "uuid", "v",
})  # fmt: skip
_EVENTS_AT_ONCE: Final = 1 << 16


def to_tracetools_events(trace: DecodedTrace) -> Sequence[DictEvent]:
    """All events of a trace in `tracetools_read`'s form, for code written for it.

    Each is a dict with ``_name``, ``_timestamp`` (nanoseconds since the epoch), ``cpu_id``, the
    contexts (``vpid``, ``vtid``, ``procname``, …) and the payload, all at the top level: numbers,
    text, lists; enumerations by the name of their value. As there, a payload field with the name of a context replaces
    it, fields called ``id``, ``uuid``, ``v``, … (which packets and headers have) are left out, and missing fields are
    not keys of the dict.

    Dicts are made on demand, a chunk at a time: iterating over a trace of any size
    takes little memory. Simultaneous events are in the order of their names in the trace.

    Reference: ros2_tracing (Jazzy), ``tracetools_read.trace.get_trace_events``.
    """
    return _Events(trace)


class _Events(Sequence[DictEvent]):
    def __init__(self, trace: DecodedTrace) -> None:
        self._tables = [table for table in trace.events.values() if len(table)]

    def __len__(self) -> int:
        return sum(len(table) for table in self._tables)

    def __iter__(self) -> Iterator[DictEvent]:
        of_event, _ = self._order
        reached = [0] * len(self._tables)
        for begin in range(0, len(of_event), _EVENTS_AT_ONCE):
            tables = of_event[begin : begin + _EVENTS_AT_ONCE]
            counts = np.bincount(tables, minlength=len(self._tables)).tolist()
            rows = [
                _dicts(table, slice(first, first + count))
                for table, first, count in zip(self._tables, reached, counts, strict=True)
            ]
            yield from (next(rows[table]) for table in tables.tolist())
            reached = [first + count for first, count in zip(reached, counts, strict=True)]

    @overload
    def __getitem__(self, index: int) -> DictEvent: ...

    @overload
    def __getitem__(self, index: slice) -> list[DictEvent]: ...

    def __getitem__(self, index: int | slice) -> DictEvent | list[DictEvent]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        of_event, row_of_event = self._order
        row = int(row_of_event[index])
        return next(_dicts(self._tables[of_event[index]], slice(row, row + 1)))

    @cached_property
    def _order(self) -> tuple[np.ndarray[Any, np.dtype[np.uint32]], np.ndarray[Any, np.dtype[np.int64]]]:
        """Table and row of each event; the rows of each table are already in order."""
        lengths = [len(table) for table in self._tables]
        times = np.concatenate([np.empty(0, dtype=np.int64), *(table.timestamp_ns for table in self._tables)])
        order = np.argsort(times, kind="stable")
        tables = np.repeat(np.arange(len(lengths), dtype=np.uint32), lengths)[order]
        return tables, np.concatenate([np.empty(0, dtype=np.int64), *map(np.arange, lengths)])[order]


def _dicts(table: EventTable, rows: slice) -> Iterator[DictEvent]:
    names = ["_name", "_timestamp"]
    values: list[Iterator[Any]] = [repeat(table.name), iter(table.timestamp_ns[rows].tolist())]
    sparse = []
    for name, column in _fields(table).items():
        names.append(name)
        values.append(iter(_values(column, rows)))
        if column.valid is not None:
            sparse.append(name)
    for row in zip(*values, strict=False):
        event = dict(zip(names, row, strict=True))
        for name in sparse:
            if event[name] is None:
                del event[name]
        yield event


def _fields(table: EventTable) -> dict[str, Column]:
    cpu = Column(name="cpu_id", values=table.cpu_id, valid=None if np.all(table.cpu_id >= 0) else table.cpu_id >= 0)
    fields = {"cpu_id": cpu, **table.columns}
    for name in table.columns:
        bare = name.removeprefix("payload_")
        if bare != name and bare in fields:
            fields[bare] = fields.pop(name)
    return {name: column for name, column in fields.items() if name not in _LEFT_OUT}


def _values(column: Column, rows: slice) -> list[Any]:
    """Values of some rows as Python objects, ``None`` if they are missing."""
    if column.offsets is not None:
        edges = column.offsets[rows.start : rows.stop + 1].tolist()
        whole = column.values[edges[0] : edges[-1]].tolist()
        found = [whole[begin - edges[0] : end - edges[0]] for begin, end in pairwise(edges)]
    else:
        found = column.values[rows].tolist()
    if column.dictionary is not None:
        words = column.dictionary
        found = [words[code] if 0 <= code < len(words) else None for code in found]
    elif column.labels:
        names = column.labels
        found = [next((name.name for name in names if name.first <= each <= name.last), each) for each in found]
    if column.valid is not None:
        found = [value if given else None for value, given in zip(found, column.valid[rows].tolist(), strict=True)]
    return found
