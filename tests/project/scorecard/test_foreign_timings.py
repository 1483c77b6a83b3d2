"""The gate on files of pyperf. ``pyperf.json`` was written by pyperf 2.10.0: five statements, 20 processes each."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import foreign_timings
from benchmarks.foreign_timings import DESIGNS, describe, draw, judge, read_night

NIGHT = Path(__file__).with_name("pyperf.json")


def test_processes_are_starts_and_the_calibration_of_their_loops_is_none():
    night = read_night(NIGHT)
    assert sorted(night) == ["format", "join", "range", "sorted", "split"]
    assert {values.shape for values in night.values()} == {(20, 3)}
    measured = json.loads(NIGHT.read_text())["benchmarks"][0]["runs"]
    assert len(measured) == 21, "the first process finds the number of loops"
    assert np.array_equal(night["range"], [run["values"] for run in measured[1:]])


def test_a_benchmark_with_too_few_processes_is_left_out(tmp_path):
    document = json.loads(NIGHT.read_text())
    del document["benchmarks"][0]["runs"][5]
    short = tmp_path / "short.json"
    short.write_text(json.dumps(document))
    assert sorted(read_night(short)) == ["format", "join", "sorted", "split"]


def test_interleaved_processes_are_neighbours_in_time():
    night = read_night(NIGHT)
    batch = draw([night] * 7, DESIGNS[0], np.random.default_rng(1))
    assert batch.base.blocks.tolist() == [0, 0, 3, 3, 4, 4, 7, 7, 8, 8]
    assert batch.head.blocks.tolist() == [1, 1, 2, 2, 5, 5, 6, 6, 9, 9]
    milliseconds = {round(float(values[0, 0]), 12) for values in batch.head.values.values()}
    assert milliseconds == {round(1e3 * float(values[1, 0]), 12) for values in night.values()}


@pytest.mark.parametrize("design", [DESIGNS[0], DESIGNS[-1]], ids=lambda each: each.name)
def test_equal_runs_give_equal_counts(design):
    nights = [read_night(NIGHT)] * 7
    first, second = (judge(nights, design, runs=2, seed=1) for _ in range(2))
    assert (first.red == second.red).all()
    assert (first.red <= 2).all()
    assert (first.found <= first.planted).all()
    assert len(list(describe(design, first, 2))) == 3


def test_too_few_files_are_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["foreign_timings", str(tmp_path)])
    with pytest.raises(SystemExit):
        foreign_timings.main()
    assert "has 0 files of 20 processes a benchmark; 7 are needed" in capsys.readouterr().err
