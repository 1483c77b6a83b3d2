"""`ldos latency`, really measured, for as short as it can be."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import polars as pl
import psutil
import pytest

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.instruments.latency import programs
from pytest_ldos.instruments.latency.programs import Library, ddsperf_library
from pytest_ldos.measure.trial.artifacts import decode_trials
from tests.builders.command_line import invoke_ldos
from tests.builders.machine import add_program

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
        return invoke_ldos("latency", *arguments)

    return run


def test_study_is_written_in_every_format(ldos, tmp_path):
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
    assert frame["count"].max() > 0
    every = pl.read_parquet(tmp_path / "tables/every_round.parquet")
    assert {"sent", "lost", "late", "failure", "p99_9_us"} <= set(every.columns)
    assert pl.read_parquet(tmp_path / "tables/rounds.parquet").height == 2 * 6


def test_rounds_without_numbers_are_not_green(ldos, monkeypatch, tmp_path):
    monkeypatch.setattr(programs, "embedded_library", lambda: Library(tmp_path / "none.so", "0"))
    result = ldos(*SHORT)
    assert result.exit_code == exit_codes.INVALID
    assert "cannot open shared object file" in result.output


@pytest.mark.parametrize(
    ("option", "value", "printed"),
    [
        ("--sizes", "3MiB", "sizes holds '3MiB'"),
        ("--transports", "pigeon", "transports holds 'pigeon'"),
        ("--output", "x.bmp", "x.bmp"),
    ],
)
def test_invalid_values_are_refused_before_measuring(ldos, option, value, printed):
    with pytest.raises(ConfigurationError, match=re.escape(printed)):
        ldos(*SHORT, option, value)


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["--output", "file/x.json"], "file/x.json cannot be written: Not a directory"),
        (["--record", "folder"], "folder cannot be written: it is a folder"),
        (["--record", "/dev/null"], "/dev/null cannot be written: it is a pipe or a device"),
        (["--parquet", "file"], "file cannot be written: Not a directory"),
    ],
)
def test_unwritable_results_are_refused_before_measuring(ldos, tmp_path, arguments, printed):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    began_s = time.monotonic()
    with pytest.raises(ConfigurationError, match=re.escape(printed)) as caught:
        ldos(*SHORT, "--seconds", "30", *arguments)
    assert caught.value.remedy
    assert time.monotonic() - began_s < 60, "the rounds alone take 60 s"
    assert not Path("/dev/null").is_file()


def test_an_interrupted_measurement_leaves_nothing_running(tmp_path):
    command = [sys.executable, "-c", "from pytest_ldos.cli.main import run; run()", "latency"]
    options = ["--sizes", "64", "--transports", "loopback", "--seconds", "30", "--no-ddsperf", "--no-ros"]
    with subprocess.Popen(
        [*command, *options], cwd=tmp_path, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)}
    ) as ldos:
        sides = await_sides(psutil.Process(ldos.pid))
        ldos.send_signal(signal.SIGINT)
        _, printed = ldos.communicate(timeout=60)
    assert ldos.returncode == 130
    assert b"interrupted; nothing is kept" in printed
    assert b"Traceback" not in printed
    assert not psutil.wait_procs(sides, timeout=60)[1]
    assert list(tmp_path.iterdir()) == []


def await_sides(ldos: psutil.Process) -> list[psutil.Process]:
    """Both sides, a while after they began."""
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        with suppress(psutil.NoSuchProcess):
            sides = [each for each in ldos.children(recursive=True) if "latency.peer" in " ".join(each.cmdline())]
            if len(sides) == 2 and all(time.time() - each.create_time() > 0.8 for each in sides):
                return sides
        time.sleep(0.05)
    raise TimeoutError("nothing was measured")


def test_missing_shared_memory_is_reported(ldos, monkeypatch, tmp_path):
    monkeypatch.setattr(programs, "ddsperf_library", lambda: None)
    add_program(tmp_path / "bin", "ddsperf", "exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    result = ldos("--transports", "shared_memory", "--no-ros")
    assert result.exit_code == exit_codes.INVALID
    assert "cyclonedds over shared_memory was not measured: Cyclone DDS" in result.stderr
    assert "ddsperf over shared_memory was not measured" in result.stderr
    assert "install one of these, or ask for another transport" in result.stderr


def test_missing_cpu_pinning_is_reported(ldos, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    result = ldos(*SHORT, "--ping-cpu", str(min(os.sched_getaffinity(0))))
    assert result.exit_code == exit_codes.INVALID
    assert "taskset not found" in result.stderr
    assert "util-linux" in result.stderr


def test_absent_cpu_is_refused(ldos):
    result = ldos(*SHORT, "--ping-cpu", "4000")
    assert result.exit_code == exit_codes.INVALID
    assert "CPU 4000" in result.stderr


@pytest.mark.measures_time
def test_failed_router_is_noted_and_the_rest_is_measured(ldos, monkeypatch, tmp_path):
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
