"""The interchange file, read by pytest-benchmark's own `compare`."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

import pytest

from pytest_ldos.base.ros2 import PathSpec
from pytest_ldos.measure.metrics.declared import declare
from pytest_ldos.measure.metrics.model import published_states
from pytest_ldos.measure.trial.record import all_series
from pytest_ldos.scenario.metrics import parse_metrics
from pytest_ldos.show.export.other_tools import left_out_of_benchmarks, render_benchmark_json
from tests.builders.trials import noisy_set, taken_from, trial, trial_set


def compare(*files) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "pytest_benchmark", "compare", *map(str, files), "--csv"]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=files[0].parent)


def render(runs):
    return render_benchmark_json([(trials, all_series(trials)) for trials in runs])


def test_pytest_benchmark_reads_it(tmp_path):
    pytest.importorskip("pytest_benchmark", reason="pytest-benchmark is not installed")
    files = []
    for number in (1, 2):
        file = tmp_path / f"000{number}_run.json"
        file.write_text(render([noisy_set(number), noisy_set(number + 5, name="msg_load")]))
        files.append(file)
    done = compare(*files)
    assert done.returncode == 0, done.stderr
    for name in ("baseline[T1]", "baseline[T2x]", "msg_load[T5]"):
        assert name in done.stdout, done.stdout


def test_values_are_seconds_and_failures_are_not_values():
    trials = noisy_set(3, failures=2)
    document = json.loads(render([trials]))
    t1 = next(each for each in document["benchmarks"] if each["name"] == "baseline[T1]")
    values = [trial.measurements["T1"].value / 1000 for trial in trials.trials[2:]]
    assert t1["stats"]["data"] == pytest.approx(values)
    assert t1["stats"]["median"] == pytest.approx(statistics.median(values))
    assert t1["stats"]["rounds"] == 8
    assert t1["extra_info"]["censored"] == 2
    assert document["commit_info"] == {"id": "0123456789ab", "dirty": False}


def test_sources_and_approximate_numbers_are_marked():
    trials = taken_from(noisy_set(3), "T3", published_states("/joint_states"))
    by_metric = {
        each["extra_info"]["metric"]: each["extra_info"] for each in json.loads(render([trials]))["benchmarks"]
    }
    assert by_metric["T1"]["sources"] == ["markers"]
    assert by_metric["T1"]["approximate"] is False
    assert by_metric["T3"]["sources"] == ["/joint_states publications"]
    assert by_metric["T3"]["approximate"] is True


def test_one_trial_is_enough():
    document = json.loads(render([noisy_set(1, n=1)]))
    assert document["benchmarks"][0]["stats"]["stddev"] == 0.0


def test_a_metric_without_values_is_no_benchmark():
    document = json.loads(render([noisy_set(1, failures=10)]))
    assert {each["extra_info"]["metric"] for each in document["benchmarks"]} == {"T5"}


def with_metrics(values: dict[str, float], *, paths=()):
    """Trials with metrics of the settings, each ``KIND:SUBJECT`` with its value."""
    metrics = tuple(declare(spec).description for spec in parse_metrics(list(values), paths))
    named = dict(zip((metric.name for metric in metrics), values.values(), strict=True))
    return trial_set([trial(index, named) for index in range(3)], metrics=metrics)


def alerts_of_github_action_benchmark(before: str, after: str) -> list[str]:
    """Benchmarks that github-action-benchmark reports as slower, with its tool ``pytest`` and its usual threshold.

    Reference: ``extractPytestResult`` in src/extract.ts; ``biggerIsBetter``, ``getRatio`` in src/write.ts.
    """
    was, now = (
        {each["fullname"]: each["stats"]["ops"] for each in json.loads(text)["benchmarks"]} for text in (before, after)
    )
    return [name for name in now if was[name] / now[name] > 2]


def test_only_times_that_are_better_when_lower_are_exported():
    path = PathSpec(name="sight", via=("/camera", "/grasp"), deadline_ms=9.0)
    values = {
        "rate:/scan": 10.0,
        "memory:planner": 190.0,
        "switches:planner": 700.0,
        "faults:planner": 3.0,
        "path:sight:misses": 2.0,
        "number:margin_ms:higher": 5.0,
        "number:length_m": 0.8,
        "gap:/scan": 120.0,
        "cpu:planner": 40.0,
        "path:sight:p99": 8.0,
        "number:waited_s": 2.5,
    }
    slow, fast = (
        with_metrics({name: factor * value for name, value in values.items()}, paths=[path]) for factor in (1, 3)
    )
    means = {each["name"]: each["stats"]["mean"] for each in json.loads(render([slow]))["benchmarks"]}
    assert means == pytest.approx(
        {
            "baseline[gap_scan]": 0.120,
            "baseline[cpu_planner]": 0.040,
            "baseline[path_sight_p99]": 0.008,
            "baseline[number_waited_s]": 2.5,
        }
    )
    assert left_out_of_benchmarks([(each, all_series(each)) for each in (slow, fast)]) == [
        "rate_scan [Hz]",
        "memory_planner [MB]",
        "switches_planner",
        "faults_planner",
        "path_sight_misses",
        "number_margin_ms [ms]",
        "number_length_m [m]",
    ]
    slower = alerts_of_github_action_benchmark(render([slow]), render([fast]))
    assert slower == [f"ldos::{name}" for name in means]
    assert alerts_of_github_action_benchmark(render([fast]), render([slow])) == []


def test_zero_time_has_no_iterations_per_second():
    trials = with_metrics({"jitter:arm": 0.0, "update:arm": 0.2})
    assert [each["name"] for each in json.loads(render([trials]))["benchmarks"]] == ["baseline[update_arm]"]
    assert left_out_of_benchmarks([(trials, all_series(trials))]) == ["jitter_arm [ms]"]
