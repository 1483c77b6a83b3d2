"""`ldos topology` on a real topology of two nodes: what it prints, writes and ends with."""

from __future__ import annotations

import copy
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import polars as pl
import psutil
import pytest

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError
from tests.builders.command_line import invoke_ldos, run_ldos
from tests.builders.topologies import TWO, text_of

SHORT = ("-t", "0.6", "--rounds", "2", "--sampling", "0.2")


@pytest.fixture
def ldos(monkeypatch, tmp_path):
    """Runs the command in a folder that holds ``two.json``; faults that `run` would report are raised."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "two.json").write_text(text_of(TWO), "utf-8")

    def run(*arguments):
        return invoke_ldos("topology", *arguments)

    return run


def test_met_target_is_reported_and_ends_with_0(ldos, tmp_path):
    (tmp_path / "easy.json").write_text(json.dumps({"resources": {"cpu[%]": 100}, "latency_total": {"lost[%]": 100}}))
    result = ldos(
        "two.json", *SHORT, "--target", "easy.json", "--log", "log", "--parquet", "tables", "--record", "r.json"
    )
    assert result.exit_code == 0, result.output
    assert "Target easy.json" in result.output
    assert "listener" in result.output
    edges = pl.read_parquet(tmp_path / "tables/latency_all.parquet")
    assert edges["received"][0] > 0
    assert set(edges.columns) >= {"node", "topic", "size_B", "late", "too_late", "lost", "mean_us", "p99_us", "freq_Hz"}
    assert pl.read_parquet(tmp_path / "tables/resources.parquet")["rss_MB"].min() > 10
    assert pl.read_parquet(tmp_path / "tables/events.parquet")["code"][0] == 0
    assert len((tmp_path / "log/latency_all.txt").read_text().splitlines()) == 3
    assert json.loads((tmp_path / "r.json").read_text())


@pytest.mark.acceptance
def test_missed_target_is_reported_and_ends_with_10(ldos, tmp_path):
    (tmp_path / "hard.json").write_text(json.dumps({"topology_file": "other.json", "resources": {"rss[KB]": 1}}))
    result = ldos("two.json", *SHORT, "--target", "hard.json", "--output", "page.html")
    assert result.exit_code == exit_codes.REGRESSED, result.output
    assert "the target was missed: rss[KB]" in result.output
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "Memory: measured, and the target" in page
    assert "was made for other.json, not for two" in page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gone.json"], "gone.json cannot be read"),
        (["two.json", "--target", "gone.json"], "the target .*/gone.json cannot be read"),
        (["two.json", "-t", "0"], "0 seconds cannot be measured"),
        (["two.json", "-t", "nan"], "nan seconds cannot be measured"),
        (["two.json", "--rounds", "1000"], "cut into 1000 rounds give less than 0.2 s to each"),
        (["two.json", "--starts", "0"], "0 starts cannot be made"),
        (["two.json", "--sampling", "0"], "sampling is 0.0 s"),
        (["two.json", "-t", "0.4", "--rounds", "1"], "sampling is 0.5 s, more than the 0.4 seconds"),
        (["two.json", "--late-absolute", "-1"], "late_absolute is -1"),
        (["two.json", "--ipc"], "has no intra-process way"),
        (["two.json", "--rmw", "rmw_fastrtps_cpp"], "is Cyclone DDS"),
    ],
)
def test_invalid_values_are_refused_before_starting(ldos, arguments, words):
    with pytest.raises(ConfigurationError, match=words):
        ldos(*arguments)


def test_too_many_processes_are_refused(ldos, tmp_path):
    made = {"nodes": [*TWO["nodes"], {"node_name": "idle", "number": 100}]}
    (tmp_path / "many.json").write_text(text_of(made))
    with pytest.raises(ConfigurationError, match="has 102 nodes, and at most 60 processes can meet"):
        ldos("many.json", "--processes", "node")


def test_a_bad_file_ends_with_2_and_its_line(tmp_path, monkeypatch):
    (tmp_path / "bad.json").write_text('{"nodes": [\n  {"node_nam": "a"}\n]}')
    monkeypatch.chdir(tmp_path)
    done = run_ldos("topology", "bad.json")
    assert done.returncode == exit_codes.USAGE
    assert "bad.json, line 2: nodes[0].node_nam: unknown key 'node_nam'" in done.stderr
    assert "did you mean 'node_name'?" in done.stderr


@pytest.mark.acceptance  # `test_latency_command` has one, too
def test_an_interrupted_run_leaves_nothing_running(tmp_path):
    (tmp_path / "two.json").write_text(text_of(TWO))
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-c", "from pytest_ldos.cli.main import run; run()", "topology", "two.json"]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, env=environment) as ldos:
        nodes = await_nodes(psutil.Process(ldos.pid))
        ldos.send_signal(signal.SIGINT)
        _, printed = ldos.communicate(timeout=60)
    assert ldos.returncode == 130
    assert b"interrupted; nothing is kept" in printed
    assert b"Traceback" not in printed
    assert not psutil.wait_procs(nodes, timeout=60)[1]
    assert list((tmp_path / "tmp").iterdir()) == []


def await_nodes(ldos: psutil.Process) -> list[psutil.Process]:
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        with suppress(psutil.NoSuchProcess):
            nodes = [each for each in ldos.children(recursive=True) if "embedded_process" in " ".join(each.cmdline())]
            if nodes:
                return nodes
        time.sleep(0.05)
    raise TimeoutError("no process was started")


def test_sender_that_misses_its_period_is_reported(ldos, tmp_path):
    made = copy.deepcopy(TWO)
    made["nodes"][0]["publishers"][0]["period_ms"] = 0.01
    (tmp_path / "fast.json").write_text(text_of(made))
    result = ldos("fast.json", *SHORT)
    assert result.exit_code == 0, result.output
    assert "messages were not sent as often as declared: talker on /counts sent " in result.output


def test_unwritable_results_are_refused_first(ldos, tmp_path):
    (tmp_path / "file").write_text("")
    for option, printed in (("--log", "log"), ("--output", "x.html"), ("--parquet", "tables"), ("--record", "r.json")):
        with pytest.raises(ConfigurationError, match="cannot be written: Not a directory") as caught:
            ldos("two.json", "-t", "60", option, f"file/{printed}")
        assert caught.value.remedy


def test_rclcpp_without_ros_2(ldos, monkeypatch):
    for name in ("AMENT_PREFIX_PATH", "ROS_DISTRO"):
        monkeypatch.delenv(name, raising=False)
    result = ldos("two.json", "--layer", "ros2")
    assert result.exit_code == exit_codes.INVALID
    assert "cannot measure: " in result.output
    assert "ROS 2" in result.output
