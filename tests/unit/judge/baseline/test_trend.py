"""Steps, anchors, change points and creep over commits."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from pytest_ldos.base.errors import ConfigurationError, RecordUnreadable
from pytest_ldos.base.series import Better
from pytest_ldos.judge.baseline.series import MetricSeries
from pytest_ldos.judge.baseline.trend import FILE, START, Pin, build_trend, read_pin, remove_pin, write_pin
from tests.builders.accepted import accepted
from tests.builders.history import commit, series_of


def noise(seed, length, deviation=0.01):
    return 2 + deviation * np.random.default_rng(seed).standard_normal(length)


def creeping(trend):
    return [number for number, point in enumerate(trend.commits) if point.creeps]


# --- steps and intervals ------------------------------------------------------------------


def test_a_step_with_its_interval():
    locations = noise(1, 30)
    locations[20:] += math.log(1.1)
    trend = build_trend(series_of(locations))
    step = trend.commits[20].step
    assert step.effect == pytest.approx(0.1, abs=0.04)
    assert 0 < step.low < step.effect < step.high
    assert trend.commits[0].step is None
    assert trend.run_deviation == pytest.approx(0.01, rel=0.5)


def test_intervals_cover_the_variation_between_runs():
    """Runs vary three times as much as expected from their trials."""
    covered = []
    for seed in range(40):
        trend = build_trend(series_of(noise(seed, 30, 0.03), trial_deviation=0.01))
        covered += [point.low <= math.exp(2) <= point.high for point in trend.commits]
    assert np.mean(covered) >= 0.93


def test_runs_of_one_commit_are_one_point():
    names = [commit(0), commit(1), commit(0), commit(1), commit(1)]
    trend = build_trend(series_of([2.0, 2.1, 2.02, 2.12, 2.11], commits=names))
    assert [len(point.runs) for point in trend.commits] == [2, 3]
    assert trend.commits[1].location == pytest.approx(math.exp(2.11))
    assert trend.commits[1].count == 30


def test_runs_with_uncommitted_changes_or_outside_of_git_stand_alone():
    trend = build_trend(series_of([2.0, 2.1, 2.0, 2.1], commits=["abc+", "abc+", "", ""]))
    assert [point.label for point in trend.commits] == ["abc+", "abc+", "run-2", "run-3"]
    assert any("outside of git" in note for note in trend.notes)


def test_few_runs_are_noted():
    trend = build_trend(series_of([2.0, 2.0, 2.0]))
    assert any("fewer than five runs" in note for note in trend.notes)
    assert trend.run_deviation is None


def test_enough_similar_runs_are_not_noted():
    trend = build_trend(series_of([2.0] * 6))
    assert not any("fewer than five runs" in note for note in trend.notes)
    assert trend.run_deviation == 0


# --- anchors ------------------------------------------------------------------------------


def test_the_rolling_anchor_is_of_the_last_accepted_runs():
    locations = np.concatenate([np.full(10, 1.0), np.full(5, 2.0)])
    trend = build_trend(series_of(locations), window=5)
    assert trend.rolling == pytest.approx(math.exp(2.0))
    assert trend.commits[10].from_rolling.effect == pytest.approx(math.e - 1)
    assert trend.commits[14].from_rolling.effect == pytest.approx(0.0)


@pytest.mark.parametrize("verdict", ["regressed", "infra"])
def test_bad_runs_do_not_enter_the_rolling_anchor(verdict):
    locations = np.concatenate([np.full(10, 1.0), np.full(5, 2.0)])
    trend = build_trend(series_of(locations, verdicts=dict.fromkeys(range(10, 15), verdict)), window=5)
    assert trend.rolling == pytest.approx(math.exp(1.0))
    assert trend.commits[14].from_rolling.effect == pytest.approx(math.e - 1)


@pytest.mark.parametrize("verdict", ["passed", "improved", "inconclusive", "no_baseline", "unjudged"])
def test_accepted_runs_enter_the_rolling_anchor(verdict):
    locations = np.concatenate([np.full(10, 1.0), np.full(5, 2.0)])
    trend = build_trend(series_of(locations, verdicts=dict.fromkeys(range(10, 15), verdict)), window=5)
    assert trend.rolling == pytest.approx(math.exp(2.0))


def test_a_pinned_commit_and_a_pinned_run():
    series = series_of(np.linspace(1.0, 1.2, 21))
    by_commit = build_trend(series, pin=Pin(commit(10), "", commit(10)))
    assert by_commit.anchor == pytest.approx(math.exp(1.1))
    assert by_commit.pinned == commit(10)
    by_run = build_trend(series, pin=Pin("", "set-10", "run-10"))
    assert by_run.anchor == pytest.approx(math.exp(1.1))
    assert by_run.commits[20].from_anchor.effect == pytest.approx(math.expm1(0.1))


def test_pin_without_runs_is_reported():
    trend = build_trend(series_of(np.ones(8)), pin=Pin("feedbeef", "", "feedbeef"))
    assert trend.pinned == ""
    assert trend.anchor_name == START
    assert any("'feedbeef' is pinned, but has no run here" in note for note in trend.notes)


def test_pins_on_disk(tmp_path):
    assert read_pin(tmp_path) is None
    write_pin(tmp_path, Pin("abc", "", "abc"))
    write_pin(tmp_path, Pin("", "set", "run"))
    assert read_pin(tmp_path) == Pin("", "set", "run")
    assert remove_pin(tmp_path)
    assert not remove_pin(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": "x", "schema": 1}', "\x00"])
def test_a_damaged_pin(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(RecordUnreadable, match=r"is no JSON|holds no pytest-ldos history pin") as refused:
        read_pin(tmp_path)
    assert "pin again" in refused.value.remedy


def test_a_pin_that_lacks_a_field(tmp_path):
    write_pin(tmp_path, Pin("abc", "", "abc"))
    file = tmp_path / FILE
    file.write_text(file.read_text().replace('"commit"', '"comit"'))
    with pytest.raises(RecordUnreadable, match=r"is damaged .*'comit'"):
        read_pin(tmp_path)


def test_a_pin_of_another_version(tmp_path):
    write_pin(tmp_path, Pin("abc", "", "abc"))
    file = tmp_path / FILE
    file.write_text(file.read_text().replace('"schema": 1', '"schema": 7'))
    with pytest.raises(RecordUnreadable, match="schema version 7"):
        read_pin(tmp_path)


def test_a_pin_that_cannot_be_written():
    from pathlib import Path

    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_pin(Path("/proc/self"), Pin("abc", "", "abc"))


# --- change points ------------------------------------------------------------------------


def test_the_commit_where_the_level_changes():
    locations = noise(3, 60)
    locations[35:] += 0.08
    trend = build_trend(series_of(locations))
    assert [number for number, point in enumerate(trend.commits) if point.change_point] == [35]


# --- creep --------------------------------------------------------------------------------


def test_steps_below_the_floor_that_add_up():
    """Forty steps of 0.6 %, each far below the floor of 5 %: 26 % in all."""
    trend = build_trend(series_of(noise(5, 40) + np.log(1.006) * np.arange(40)), floor=0.05)
    found = creeping(trend)
    assert found
    assert 8 < found[0] < 25
    assert found[-1] == 39
    assert "start" in trend.commits[-1].creeps
    assert all(abs(point.step.effect) < 0.05 for point in trend.commits[1:])
    assert trend.commits[-1].from_anchor.low > 0.05


def test_creep_away_from_the_rolling_anchor():
    trend = build_trend(series_of(noise(6, 60, 0.005) + np.log(1.01) * np.arange(60)), floor=0.05)
    assert "rolling" in trend.commits[-1].creeps


def test_one_large_step_is_not_creep():
    locations = noise(7, 60)
    locations[30:] += 0.2
    assert creeping(build_trend(series_of(locations))) == []


def test_accumulated_change_below_the_floor_is_not_creep():
    assert creeping(build_trend(series_of(noise(8, 60) + np.linspace(0, 0.02, 60)), floor=0.05)) == []


@pytest.mark.parametrize("better", Better)
def test_only_creep_for_the_worse(better):
    slope = -0.3 if better is Better.LOWER else 0.3
    assert creeping(build_trend(series_of(noise(9, 40) + np.linspace(0, slope, 40), better=better))) == []
    assert creeping(build_trend(series_of(noise(9, 40) - np.linspace(0, slope, 40), better=better)))


def test_creep_restarts_at_a_pin():
    series = series_of(noise(10, 40) + np.where(np.arange(40) < 20, np.log(1.008) * np.arange(40), np.log(1.008) * 20))
    assert creeping(build_trend(series))
    trend = build_trend(series, pin=Pin(commit(25), "", commit(25)))
    assert "pin" not in trend.commits[-1].creeps


def with_accepted(series: MetricSeries, place: int) -> MetricSeries:
    """The series, with a step at one of its runs that somebody accepted."""
    runs = [*series.runs]
    runs[place] = replace(runs[place], brought=accepted("T1", 0.05))
    return replace(series, runs=tuple(runs))


def test_accepted_step_is_not_creep_and_the_start_is_behind_it():
    """Two steps of 4 %, each below the floor, 8 % together."""
    locations = noise(12, 60, 0.002) + np.log(1.04) * (np.arange(60) // 20)
    series = series_of(locations, verdicts={20: "accepted"})
    assert "start" in build_trend(series).commits[-1].creeps
    trend = build_trend(with_accepted(series, 20))
    assert creeping(trend) == []
    assert [number for number, point in enumerate(trend.commits) if point.accepted] == [20]
    assert trend.commits[-1].from_anchor.effect == pytest.approx(0.04, abs=0.02)


def test_creep_behind_an_accepted_step_is_found():
    locations = noise(13, 60, 0.002) + np.log(1.006) * np.maximum(np.arange(60) - 20, 0)
    trend = build_trend(with_accepted(series_of(locations), 20))
    assert "start" in trend.commits[-1].creeps


def test_noise_is_rarely_reported_as_creep():
    """Fifty unchanged series of 60 runs that differ by about the floor."""
    flagged = sum(bool(creeping(build_trend(series_of(noise(seed, 60, 0.04))))) for seed in range(50))
    assert flagged <= 2
