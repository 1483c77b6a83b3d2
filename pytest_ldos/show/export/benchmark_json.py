"""Series of duration metrics in pytest-benchmark's JSON format, for its `compare` and other tools.

The format has neither unit nor direction: its readers take each mean for seconds (lower is better), and each ``ops``
for iterations per second (higher is better). Other metrics are left out; `left_out_of_benchmarks` names them. There is
one benchmark per scenario and metric.

Reference: ``src/extract.ts`` of github-action-benchmark, ``adapters/python/pytest.rs`` of bencher.
"""

from __future__ import annotations

import json
import math
import platform
import statistics
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from pytest_ldos.base.series import Better, Series
from pytest_ldos.base.text import SECONDS_OF
from pytest_ldos.host.checkout import CHANGED, is_changed
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import TrialSet, sources_of

_FORMAT_VERSION: Final = "5.1.0"


def render_benchmark_json(measured: Sequence[tuple[TrialSet, Mapping[str, Series]]]) -> str:
    """JSON text of all scenarios of a run.

    Args:
        measured: trials, and the series of their metrics.
    """
    runs = [trials for trials, _ in measured]
    document = {
        "machine_info": _machine_info(runs),
        "commit_info": {"id": runs[0].commit.removesuffix(CHANGED) if runs else "", "dirty": _is_dirty(runs)},
        "benchmarks": [benchmark for each in measured for benchmark in _benchmarks(*each)],
        "datetime": datetime.now(UTC).isoformat(),
        "version": _FORMAT_VERSION,
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


def _is_dirty(runs: Sequence[TrialSet]) -> bool:
    return any(is_changed(trials.commit) for trials in runs)


def _machine_info(runs: Sequence[TrialSet]) -> dict[str, Any]:
    host = runs[0].fingerprint if runs else None
    return {
        "node": host.hostname if host else platform.node(),
        "machine": platform.machine(),
        "system": platform.system(),
        "release": host.kernel if host else platform.release(),
        "python_version": platform.python_version(),
        "cpu": {"brand_raw": host.cpu_model if host else "", "count": host.cores if host else 0},
        "ldos_host_class": host.host_class if host else "",
    }


def _benchmarks(trials: TrialSet, series: Mapping[str, Series]) -> list[dict[str, Any]]:
    return [_benchmark(trials, each, series[each.name]) for each in trials.metrics if _is_duration(series[each.name])]


def _extra_info(trials: TrialSet, metric: Metric, series: Series) -> dict[str, Any]:
    sources = sorted(sources_of(trials, metric), key=lambda source: source.name)
    return {
        "metric": metric.name,
        "unit": "s",
        "stack": trials.stack,
        "censored": len(series) - len(series.finite),
        "sources": [source.name for source in sources],
        "approximate": any(source.is_approximate for source in sources),
    }


def _benchmark(trials: TrialSet, metric: Metric, series: Series) -> dict[str, Any]:
    name = f"{trials.scenario}[{series.name}]"
    return {
        "group": trials.scenario,
        "name": name,
        "fullname": f"ldos::{name}",
        "params": None,
        "param": None,
        "extra_info": _extra_info(trials, metric, series),
        "options": {"disable_gc": False, "timer": "lttng", "min_rounds": trials.spec.trials, "warmup": False},
        "stats": _stats([value * SECONDS_OF[metric.unit] for value in series.finite]),
    }


def _stats(data: list[float]) -> dict[str, Any]:
    ordered = sorted(data)
    mean = statistics.fmean(data)
    spread = statistics.stdev(data) if len(data) > 1 else 0.0
    low, middle, high = statistics.quantiles(data, n=4, method="inclusive") if len(data) > 1 else ordered * 3
    inter_quartile = high - low
    ld15, hd15 = _within_fences(ordered, low - 1.5 * inter_quartile, high + 1.5 * inter_quartile)
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


def _within_fences(ordered: list[float], low: float, high: float) -> tuple[float, float]:
    """The smallest and largest values that are not outliers."""
    inside = [value for value in ordered if low <= value <= high]
    return inside[0], inside[-1]
