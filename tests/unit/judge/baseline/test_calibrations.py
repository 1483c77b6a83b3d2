"""Calibrations: as text, on disk, and their selection for a run."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.judge.baseline.key import SCHEMA_VERSION, MetricNoise, decode_calibration, encode_calibration
from pytest_ldos.judge.baseline.store import (
    BaselineStores,
    Calibrated,
    Uncalibrated,
    UnreadableCalibration,
    find_calibration,
    save_calibration,
)
from pytest_ldos.show.report.reasons import describe_other_calibration
from tests.builders.calibrations import calibration_of
from tests.builders.trials import FINGERPRINT, noisy_set

NOISE = MetricNoise(trial_sd=0.1, start_sd=0.02, start_df=7.0, run_sd=0.03, run_df=5.5, floor=0.05)
MADE = calibration_of({"T1": NOISE})
HERE = Path("here.json")


@pytest.fixture
def stores(tmp_path):
    return BaselineStores(tmp_path / "repository", tmp_path / "local")


def decode_with(**changes):
    return decode_calibration(json.dumps({**json.loads(encode_calibration(MADE)), **changes}), HERE)


positive = st.floats(0, 1e6)


@given(st.dictionaries(st.text(min_size=1), st.builds(MetricNoise, **dict.fromkeys(vars(NOISE), positive))))
def test_text_and_back(metrics):
    made = dataclasses.replace(MADE, metrics=metrics)
    assert decode_calibration(encode_calibration(made), HERE) == made
    assert decode_calibration(f"\ufeff{encode_calibration(made)}", HERE) == made


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "here.json is no JSON"),
        ("[" * 100_000, "here.json is no JSON"),
        ("1" * 5000, "here.json is no JSON"),
        ("[1]", "holds no pytest-ldos calibration"),
        ('{"kind": "pytest-ldos trials"}', "holds no pytest-ldos calibration"),
    ],
)
def test_file_that_is_not_a_calibration_is_refused(text, message):
    with pytest.raises(RecordUnreadable, match=message):
        decode_calibration(text, HERE)


def test_another_schema_version_is_refused():
    with pytest.raises(RecordUnreadable, match=r"schema version 99, this version .* reads 1\n.*calibrate again"):
        decode_with(schema=SCHEMA_VERSION + 98)


@pytest.mark.parametrize(
    "changes",
    [
        {"metrics": {"T1": {"trial_sd": 1}}},
        {"metrics": {"T1": {**vars(NOISE), "floor": -1}}},
        {"metrics": {"T1": {**vars(NOISE), "run_df": "many"}}},
        {"metrics": [1]},
        {"fingerprint": None},
        {"starts": 0},
        {"starts": True},
        {"weather": "fine"},
        {"metrics": {"T1": {**vars(NOISE), "floor": 10**400}}},
        {"scenario": None},
        {"commit": 7},
        {"starts": 2.5},
    ],
)
def test_damaged_calibration_is_refused(changes):
    with pytest.raises(RecordUnreadable, match=r"here\.json is damaged"):
        decode_with(**changes)


def test_calibration_is_stored_next_to_the_baseline(stores):
    baseline = stores.save(noisy_set(1), to_repository=False)
    file = save_calibration(stores, MADE)
    assert file == baseline.with_name("baseline.calibration.json")
    found = find_calibration(stores, noisy_set(2))
    assert found == Calibrated(MADE, file)
    assert [each.file for each in stores.all()] == [baseline]


def test_repository_calibration_has_precedence_and_is_updated(stores):
    first = save_calibration(stores, MADE, to_repository=True)
    again = save_calibration(stores, dataclasses.replace(MADE, starts=9))
    assert first == again
    assert first.is_relative_to(stores.repository)
    assert find_calibration(stores, noisy_set(1)).calibration.starts == 9


def test_missing_calibration(stores):
    assert find_calibration(stores, noisy_set(1)) == Uncalibrated()


def test_calibration_of_another_host_is_reported_and_not_used(stores):
    save_calibration(stores, MADE)
    other = noisy_set(1, fingerprint=dataclasses.replace(FINGERPRINT, cores=64))
    found = find_calibration(stores, other)
    assert isinstance(found, Uncalibrated)
    assert "a calibration of host class test-cpu_4-cores" in describe_other_calibration(found.other)
    assert "ldos calibrate --scenario baseline" in describe_other_calibration(found.other)


def test_other_hosts_calibration_of_a_scenario_named_like_a_pattern(stores):
    save_calibration(stores, dataclasses.replace(MADE, scenario="[a]/b"))
    other = noisy_set(1, name="[a]/b", fingerprint=dataclasses.replace(FINGERPRINT, cores=64))
    assert "a calibration of host class test-cpu_4-cores" in describe_other_calibration(
        find_calibration(stores, other).other
    )


def test_calibration_moved_to_another_hosts_place(stores):
    file = save_calibration(stores, MADE)
    other = noisy_set(1, fingerprint=dataclasses.replace(FINGERPRINT, cores=64))
    place = Path(str(file).replace("4-cores", "64-cores"))
    place.parent.mkdir(parents=True)
    file.rename(place)
    found = find_calibration(stores, other)
    assert isinstance(found, Uncalibrated)
    assert "test-cpu_4-cores" in describe_other_calibration(found.other)


def test_another_scenarios_calibration_is_not_used(stores):
    save_calibration(stores, MADE)
    assert find_calibration(stores, noisy_set(1, name="cpu_load")) == Uncalibrated()


@pytest.mark.parametrize("text", ["{", '{"kind": "pytest-ldos calibration", "schema": 7}'])
def test_unreadable_calibration(stores, text):
    save_calibration(stores, MADE).write_text(text)
    found = find_calibration(stores, noisy_set(1))
    assert isinstance(found, UnreadableCalibration)
    assert "baseline.calibration.json" in found.reason


def test_calibration_without_number_of_runs_counts_as_one_run():
    """Earlier files had one run's halves for two."""
    stated = decode_with(runs=3)
    assert (stated.runs, stated.metrics["T1"].run_df) == (3, 5.5)
    document = json.loads(encode_calibration(MADE))
    del document["runs"]
    assert decode_calibration(json.dumps(document), HERE).metrics["T1"] == dataclasses.replace(NOISE, run_df=0.0)
