"""The record of unchanged runs: when it is used."""

from __future__ import annotations

import csv
from unittest.mock import patch

from pytest_ldos.judge.unchanged import FEWEST_DEGREES, MEASURED, RECORD, estimate, known_of
from pytest_ldos.measure.metrics.catalogue import METRICS


def plain_runs():
    """Rows of each plain run of the embedded arm."""
    runs = {}
    with RECORD.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if (row["stack"], row["condition"], row["version"]) == ("embedded", "idle", ""):
                runs.setdefault(row["taken_at"], []).append(row)
    return [*runs.values()]


def known_of_first(count):
    known = estimate(row for run in plain_runs()[:count] for row in run)
    with patch("pytest_ldos.judge.unchanged.estimate_record", return_value=known):
        return known_of("embedded", "T4")


def test_each_built_in_metric_is_recorded():
    assert tuple(METRICS) == MEASURED


def test_record_of_few_runs_is_not_used():
    """With fewer degrees of freedom than the assumption has, a first comparison would be less certain."""
    fewest = int(FEWEST_DEGREES) + 1
    assert known_of_first(fewest - 1) is None
    assert known_of_first(fewest).runs.degrees == FEWEST_DEGREES


def test_variance_between_runs_is_that_of_the_record():
    known = known_of_first(8)
    assert 0 < known.runs.value**0.5 < 0.01
    assert known.starts.degrees > 0
