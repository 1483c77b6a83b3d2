"""`ldos latency`, really measured, for as short as it can be."""

from __future__ import annotations

import json
import os
import re

import polars as pl
import pytest
from typer.testing import CliRunner

from pytest_ldos import exit_codes
from pytest_ldos.cli.main import app
from pytest_ldos.errors import ConfigurationError
from pytest_ldos.middleware.latency import programs
from pytest_ldos.middleware.latency.cyclone import Library, ddsperf_library
from pytest_ldos.trial.codec import decode_trials
from tests.builders.machine import add_program

pytestmark = pytest.mark.alone

SHORT = (
    "--sizes",
    "64",
    "--transports",
    "one_process",
    "--seconds",
    "0.1",
    "--rounds",
    "2",
    "--no-ddsperf",
    "--no-ros",
)


@pytest.fixture
def ldos(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        result = CliRunner().invoke(app, ["latency", *map(str, arguments)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def test_a_study_is_put_out_in_every_form(ldos, tmp_path):
    result = ldos(*SHORT, "--format", "json", "--parquet", "tables", "--record", "rounds.json")
    assert result.exit_code == 0, result.stderr
    study = json.loads(result.stdout)
    assert study["instrument"] == "latency"
    assert study["layer"] == "embedded"
    assert [each["block"] for each in study["rounds"]] == [0, 1]
    for each in study["rounds"]:
        assert each["case"] == "cyclonedds, one_process, 64 B, reliable"
        assert 0 < each["values"]["round_trip_p50"] <= each["values"]["round_trip_p99"]
    kept = decode_trials((tmp_path / "rounds.json").read_text(), tmp_path / "rounds.json")
    assert len(kept.trials) == 2
    frame = pl.read_parquet(next((tmp_path / "tables").glob("*distribution*")))
    assert frame["count"].max() > 100


def test_rounds_without_numbers_are_not_green(ldos, monkeypatch, tmp_path):
    monkeypatch.setattr(programs, "embedded_library", lambda: Library(tmp_path / "none.so", "0"))
    result = ldos(*SHORT)
    assert result.exit_code == exit_codes.INVALID
    assert "cannot open shared object file" in result.output


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--sizes", "3MiB", "sizes holds '3MiB'"),
        ("--transports", "pigeon", "transports holds 'pigeon'"),
        ("--output", "x.bmp", "x.bmp"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_measured(ldos, option, value, said):
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        ldos(*SHORT, option, value)


def test_a_cpu_that_is_not_there_is_refused(ldos):
    result = ldos(*SHORT, "--ping-cpu", "4000")
    assert result.exit_code == exit_codes.INVALID
    assert "CPU 4000" in result.stderr


def test_a_router_that_does_not_start_is_a_note_and_the_rest_is_measured(ldos, monkeypatch, tmp_path):
    if ddsperf_library() is None:
        pytest.skip("ddsperf (cyclonedds-tools) is not installed: no library here shares memory")
    add_program(tmp_path / "bin", "iox-roudi", "echo no luck; exit 4")
    add_program(tmp_path / "bin", "chrt", "echo Operation not permitted >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setattr(programs, "embedded_library", lambda: None)
    arguments = [
        "--transports",
        "loopback,shared_memory",
        "--sizes",
        "1",
        "--seconds",
        "0.1",
        "--rounds",
        "1",
        "--no-ros",
    ]
    result = ldos(*arguments, "--priority", "40", "--format", "json")
    assert result.exit_code == 0, result.stderr
    study = json.loads(result.stdout)
    assert any(
        "shared memory of Cyclone DDS was not measured: iox-roudi ended with exit code 4" in note
        for note in study["notes"]
    )
    assert any(
        "SCHED_FIFO 40 is not permitted" in note and "Operation not permitted" in note for note in study["notes"]
    )
    assert [each["case"] for each in study["rounds"]] == ["twin of ddsperf, loopback, 1 B, reliable"]
    (row,) = study["tables"]["beside_ddsperf"]["rows"]
    assert 0.1 < row["ratio"] < 10
    assert study["settings"]["priority"] == 0
