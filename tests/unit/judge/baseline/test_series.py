"""Locations of runs: after covariates, by goal and by host class."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl
import pytest

from pytest_ldos.base.series import Invalid
from pytest_ldos.judge.baseline.history import HistoryStore
from pytest_ldos.judge.baseline.series import build_series, latest_runs
from pytest_ldos.measure.metrics.model import Source
from tests.builders.history import add_run, fill, run_of
from tests.builders.history import commit as commit_of
from tests.builders.trials import FINGERPRINT, TYPICAL, measured, taken_from, trial


@pytest.fixture
def history(tmp_path):
    return HistoryStore(tmp_path)


def series(history, metric="T1"):
    return build_series(history.read(metrics=[metric]).table)


def test_each_run_is_a_point(history):
    fill(history.directory, [{"T1": 1.0}, {"T1": 2.0}])
    (found,) = series(history)
    assert [run.commit for run in found.runs] == [commit_of(0), commit_of(1)]
    assert found.value(found.runs[1].location) == pytest.approx(28, rel=0.15)
    assert found.effect(found.runs[1].location - found.runs[0].location) == pytest.approx(1.0, rel=0.2)
    assert all(run.count == 6 and run.half_width < 0.2 for run in found.runs)


def test_hosts_stacks_scenarios_and_sources_never_mix(history):
    add_run(history, 0)
    add_run(history, 1, fingerprint=dataclasses.replace(FINGERPRINT, cores=64))
    add_run(history, 2, stack_kind="ros2-gz")
    add_run(history, 3, name="msg_load")
    elsewhere = taken_from(run_of(4), "T1", Source("feedback", "later"))
    history.append(rows_of(elsewhere))
    assert len(series(history)) == 5
    assert len({(each.key, each.source) for each in series(history)}) == 5


def rows_of(trials, verdict="passed"):
    from pytest_ldos.judge.baseline.history import build_rows

    return build_rows(trials, run="r", branch="", verdict=verdict)


def test_failed_trials_are_infinitely_slow_not_left_out(history):
    add_run(history, 0, n=10, failures=2)
    add_run(history, 1, n=10, failures=10)
    (found,) = series(history, "T4")
    few, all_failed = found.runs
    assert (few.count, few.failed) == (10, 2)
    assert np.isfinite(few.location)
    assert 0 < few.half_width < 1
    assert (all_failed.failed, all_failed.location) == (10, np.inf)
    assert not all_failed.is_accepted


def test_invalid_values_do_not_count(history):
    broken = run_of(0, n=6)
    first = broken.trials[0]
    distrusted = dataclasses.replace(
        first, measurements={**first.measurements, "T1": measured("T1", Invalid("clocks"))}
    )
    history.append(rows_of(dataclasses.replace(broken, trials=(distrusted, *broken.trials[1:]))))
    (found,) = series(history)
    assert found.runs[0].count == 5


def test_invalid_runs_do_not_count(history):
    """Histories of earlier versions have them."""
    history.append(rows_of(run_of(0)))
    history.append(rows_of(run_of(1)).with_columns(verdict=pl.lit("invalid")))
    (found,) = series(history)
    assert [run.commit for run in found.runs] == [commit_of(0)]


def test_variation_explained_by_cpu_speed_is_removed(history):
    """The machine was half as fast in the second run; the code is the same."""
    rng = np.random.default_rng(1)
    for number, slow in enumerate([1.0, 1.5, 1.0]):
        speeds = slow * rng.lognormal(0, 0.2, 10)
        trials = [
            trial(i, {**TYPICAL, "T1": 14.0 * speeds[i] * rng.lognormal(0, 0.01)}, cpu_work_ns=round(1.3e6 * speeds[i]))
            for i in range(10)
        ]
        history.append(rows_of(dataclasses.replace(run_of(number), trials=tuple(trials))))
    (found,) = series(history)
    locations = [run.location for run in found.runs]
    assert max(locations) - min(locations) < 0.02
    assert found.runs[1].median > 1.3 * found.runs[0].median


def test_goals_are_compared_with_themselves(history):
    """The second run happens to have another share of the far goal."""
    for number, far in enumerate([2, 8]):
        trials = [
            trial(i, {**TYPICAL, "T1": (40.0 if i < far else 10.0) * (1 + i / 1000)}, goal="far" if i < far else "near")
            for i in range(10)
        ]
        history.append(rows_of(dataclasses.replace(run_of(number), trials=tuple(trials))))
    (found,) = series(history)
    assert found.runs[0].location == pytest.approx(found.runs[1].location, abs=0.01)


def test_values_below_zero_are_compared_by_differences(history):
    for number, shift in enumerate([0.0, 3.0]):
        trials = [trial(i, {**TYPICAL, "T2x": 30.0 + shift - 31.0 * (i == 0)}) for i in range(9)]
        history.append(rows_of(dataclasses.replace(run_of(number), trials=tuple(trials))))
    (found,) = series(history, "T2x")
    first, second = found.runs
    assert found.effect(second.location - first.location) == pytest.approx(0.1, abs=0.02)
    assert found.value(second.location) == pytest.approx(33.0, abs=0.1)


def test_last_runs_and_pinned_runs_are_kept(history):
    fill(history.directory, [{}] * 5)
    table = latest_runs(history.read(metrics=["T1"]).table, 2, keep=[commit_of(0)])
    (found,) = build_series(table)
    assert [run.commit for run in found.runs] == [commit_of(0), commit_of(3), commit_of(4)]


def test_nothing_measured_gives_no_series(history):
    add_run(history, 0, n=4, failures=4)
    assert series(history, "T4") == []


def test_planned_durations_are_a_covariate_within_versions(history):
    """T4 follows the plan; the second version plans longer, which is its own doing."""
    rng = np.random.default_rng(2)
    for number, longer in enumerate([1.0, 1.2]):
        plans_ms = 1900 * longer * rng.lognormal(0, 0.2, 12)
        trials = [
            trial(i, {**TYPICAL, "T4": plan * rng.lognormal(0, 0.002)}, plan_duration_ns=round(plan * 1e6))
            for i, plan in enumerate(plans_ms)
        ]
        history.append(rows_of(dataclasses.replace(run_of(number), trials=tuple(trials))))
    (found,) = series(history, "T4")
    first, second = found.runs
    assert max(run.half_width for run in found.runs) < 0.01
    by_medians = np.log(second.median / first.median)
    assert second.location - first.location == pytest.approx(by_medians, abs=0.15)
    assert second.location - first.location > 0.05
