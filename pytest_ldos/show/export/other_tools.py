"""Trials in pytest-benchmark's JSON and in OMPL's benchmark log.

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
from typing import Any

from pytest_ldos.base.series import Better, Series
from pytest_ldos.base.text import SECONDS_OF, one_line
from pytest_ldos.host.checkout import CHANGED, is_changed
from pytest_ldos.measure.metrics.latency import T1
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import Trial, TrialSet, sources_of
from pytest_ldos.robot.stack.goals import OutcomeClass


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
