"""`ldos analyze` of many traces."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import polars as pl
import psutil
import pytest

from tests.builders.command_line import lines_of, run_ldos

NAMES = ("workspace_mock", "panda_baseline_1", "service_action")


@pytest.fixture
def folder(golden, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "runs").mkdir()
    for name in NAMES:
        (tmp_path / "runs" / name).symlink_to(golden(name))
    return tmp_path / "runs"


def test_summary_of_all_traces(folder):
    done = run_ldos("analyze", "runs", "--scheduler", "synchronous")
    lines = lines_of(done.stdout)
    assert done.returncode == 0
    assert lines[0].startswith("3 traces below runs: ")
    assert lines[0].endswith(" events, 4 goals")
    assert "trace nodes goals T1 T2 T3 T4 lost" in lines
    assert "workspace_mock 15 3 reached 24.0 ms 1964.2 ms 0.0274 ms 1989.7 ms 0" in lines
    assert "panda_baseline_1 14 1 unknown 17.3 ms 1962.0 ms 0.294 ms 1979.9 ms 0" in lines
    assert "T1 3 1 24.0 ms 30.6 ms markers" in lines
    assert "T1 1 1 17.3 ms 17.3 ms feedback publications" in lines
    assert done.stderr.splitlines() == ["1 of 3 traces", "2 of 3 traces", "3 of 3 traces"]


def test_single_trace_is_shown_as_before(folder):
    one = run_ldos("analyze", "runs/workspace_mock").stdout
    assert "nodes" in lines_of(one)
    assert run_ldos("analyze", "runs/workspace_mock", "--scheduler", "synchronous").stdout.startswith("1 trace: ")


@pytest.mark.parametrize("arguments", [("--together",), ("--clock-offset", "estimate")])
def test_several_of_a_folder_as_one_trace(folder, arguments):
    """As traces of several hosts are read, whose clocks are to be brought together."""
    together = run_ldos("analyze", "runs", *arguments)
    assert "nodes" in lines_of(together.stdout)
    assert "3 traces" not in together.stdout


def test_unreadable_trace_is_a_row_and_an_exit_code(folder):
    shutil.copytree((folder / "service_action").resolve(), folder / "broken")
    metadata = next((folder / "broken").rglob("metadata"))
    metadata.write_bytes(b"x")
    done = run_ldos("analyze", "runs", "nothing", "--scheduler", "synchronous", "--output", "out")
    assert done.returncode == 11
    lines = lines_of(done.stdout)
    assert lines[0].startswith("5 traces: ")
    assert lines[0].endswith("; 2 could not be read")
    assert "nothing: there is no such directory" in lines
    assert any(re.match(r"runs/broken: \S+/metadata, byte 0: not CTF metadata", line) for line in lines)
    table = pl.read_parquet("out/traces.parquet")
    assert table.filter(problem="")["trace"].to_list() == sorted(f"runs/{name}" for name in NAMES)
    assert pl.read_parquet("out/measurements.parquet")["trace"].unique().sort().to_list() == [
        "runs/panda_baseline_1",
        "runs/workspace_mock",
    ]


@pytest.mark.parametrize("scheduler", ["synchronous", pytest.param("local", marks=pytest.mark.acceptance)])
def test_truncated_trace_has_a_row_and_is_not_pooled(folder, golden, scheduler):
    whole = pooled_rows(run_ldos("analyze", "runs", "--scheduler", scheduler).stdout)
    shutil.copytree(golden("workspace_mock"), folder / "cut")
    stream = max((folder / "cut").rglob("*_[0-9]"), key=lambda file: file.stat().st_size)
    os.truncate(stream, stream.stat().st_size * 3 // 4)
    done = run_ldos("analyze", "runs", "--scheduler", scheduler, "--output", "out")
    assert done.returncode == 0, done.stderr
    lines = lines_of(done.stdout)
    assert any(re.match(r"cut: .*missing bytes", line) for line in lines)
    (row,) = (line for line in lines if line.startswith("cut 1"))
    assert "ms" in row
    assert "left out: 1 trace that is damaged or lost events" in lines
    assert pooled_rows(done.stdout) == whole
    table = pl.read_parquet("out/traces.parquet")
    assert table.filter(pl.col("damage") != "")["trace"].to_list() == ["runs/cut"]
    measured = pl.read_parquet("out/measurements.parquet").filter(pl.col("value").is_not_null())
    assert "runs/cut" in measured["trace"].to_list()


def pooled_rows(text):
    lines = lines_of(text)
    start = lines.index("metric goals traces median p95 source")
    return [line for line in lines[start:] if re.match(r"T\w+ \d", line)]


def test_only_a_data_set_is_replaced(folder):
    arguments = ("analyze", "runs", "--scheduler", "synchronous", "--output")
    assert run_ldos(*arguments, "out").returncode == 0
    assert "out exists\n  → name another path" in run_ldos(*arguments, "out").stderr
    assert run_ldos(*arguments, "out", "--force").returncode == 0
    assert "is not an output of this command" in run_ldos(*arguments, "runs", "--force").stderr
    done = run_ldos(*arguments, "/proc/tables")
    assert (done.returncode, "/proc/tables cannot be written" in done.stderr) == (2, True)
    assert "of 3 traces" not in done.stderr, "it was reported only after all had been read"


def test_failed_write_still_shows_the_summary(folder, monkeypatch):
    def taken(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pytest_ldos.cli.traces.write_fleet", taken)
    done = run_ldos("analyze", "runs", "--scheduler", "synchronous", "--output", "out")
    assert (done.returncode, "out cannot be written: No space left on device" in done.stderr) == (11, True)
    assert done.stdout.startswith("3 traces below runs: ")
    assert not [each for each in folder.parent.iterdir() if each.name.startswith(".out")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--pid", "1"), "--pid belongs to one trace"),
        (("runs/workspace_mock", "--clock-offset", "estimate"), "--clock-offset belongs to one trace"),
        (("--scheduler", "lokal"), "unknown scheduler 'lokal'"),
        (("--scheduler", "synchronous", "--workers", "2"), "--workers belongs to --scheduler local"),
        (("--metrics", "nothing.py"), "nothing.py cannot be loaded"),
    ],
)
def test_options_for_one_trace_are_refused_for_many(folder, arguments, message):
    done = run_ldos("analyze", "runs", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_no_traces_are_refused(folder):
    (folder / "empty").mkdir()
    done = run_ldos("analyze", folder / "empty")
    assert done.returncode == 2
    assert "no trace in it" in done.stderr


def test_without_dask_traces_are_read_one_by_one(folder, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = run_ldos("analyze", "runs")
    assert done.returncode == 0
    assert done.stderr.startswith("Dask is not installed: the traces are read one by one (pip install 'pytest-ldos[fl")
    asked = run_ldos("analyze", "runs", "--scheduler", "local")
    assert (asked.returncode, "Dask is not installed" in asked.stderr) == (2, True)


SLOW = """
import time
from pathlib import Path
from pytest_ldos.api import Better, OwnMetric

def measure(context, window):
    Path(__file__).with_name("reading").touch()
    time.sleep(600)

def pytest_ldos_metrics():
    return [OwnMetric(name="slow", title="slow", unit="ms", better=Better.LOWER, measure=measure)]
"""


@pytest.mark.acceptance
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_the_command(folder, tmp_path, end):
    """Ctrl-C reaches all processes of a terminal's group; SIGKILL only the one."""
    (tmp_path / "slow.py").write_text(SLOW)
    command = [sys.executable, "-c", "from pytest_ldos.cli.main import run; run()", "analyze", "runs"]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with (tmp_path / "printed").open("wb") as printed:
        process = subprocess.Popen(
            [*command, "--metrics", "slow.py", "--workers", "2"],
            stdout=printed,
            stderr=printed,
            start_new_session=True,
            env={**os.environ, "TMPDIR": str(temporary)},
        )
    await_(lambda: (tmp_path / "reading").exists() or process.poll() is not None)
    started = psutil.Process(process.pid).children(recursive=True)
    assert len(started) >= 3
    if end is signal.SIGINT:
        os.killpg(process.pid, end)
    else:
        process.kill()
    assert process.wait(60) != 0
    await_(lambda: not [each for each in started if is_running(each)])
    await_(lambda: not list(temporary.iterdir()))
    assert "Traceback" not in (tmp_path / "printed").read_text()


def await_(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_running(process):
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
