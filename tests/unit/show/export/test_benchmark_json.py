"""The interchange file, read by pytest-benchmark's own `compare`."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

import pytest

from pytest_ldos.measure.metrics.sources import published_states
from pytest_ldos.measure.trial.series_of import all_series
from pytest_ldos.show.export.benchmark_json import render_benchmark_json
from tests.builders.trials import noisy_set, taken_from


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


def test_sources_are_told_and_whether_numbers_are_approximate():
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
