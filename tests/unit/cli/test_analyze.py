"""`ldos analyze`."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from pytest_ldos.cli.main import app
from pytest_ldos.errors import ConfigurationError, TraceUnreadable
from pytest_ldos.execution.store import read_model


@pytest.fixture
def analyze(monkeypatch, tmp_path):
    """Runs the command in an empty project; faults are raised."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments):
        result = CliRunner().invoke(app, ["analyze", *map(str, arguments)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def test_what_ran_is_shown(analyze, golden):
    output = analyze(golden("pipeline_single_links")).stdout
    assert "7446 events: 4 processes, 5 nodes, 372 publications; nothing lost" in output
    rows = {line.split()[0]: line.split() for line in output.splitlines() if line}
    assert rows["/src_a"][:4] == ["/src_a", "100", "20.0", "100"]
    assert "/async_cache: timer of 100 ms" in output


def test_what_is_unknown_or_lost_is_said(analyze, golden):
    output = analyze(golden("late_start")).stdout
    assert "1 publishers without an init event (tracing began after they were made)" in output
    assert "1039 events lost" in analyze(golden("discarded")).stdout


def test_the_projects_paths_are_shown(analyze, golden, tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[[tool.ldos.paths]]\nname = "whole"\nvia = ["/src_a", "/sync_out"]\ndeadline_ms = 12.2\n'
    )
    output = analyze(golden("pipeline_single_links")).stdout
    (row,) = [line.split() for line in output.splitlines() if line.startswith("whole ")]
    assert row[1] == "50"
    assert "timer wait: /async_cache: timer of 100 ms" in output


def test_tables_are_written(analyze, golden, tmp_path):
    output = analyze(golden("talker_listener"), "--output", tmp_path / "tables").stdout
    assert f"tables: {tmp_path / 'tables'}" in output
    assert len(read_model(tmp_path / "tables").publications) == 112


def test_no_trace_there(analyze, tmp_path):
    with pytest.raises(TraceUnreadable, match="there is no such directory"):
        analyze(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("vm=soon", "has no number"),
        ("moon=5", "no host 'moon'"),
        ("missing.toml", "cannot be read from missing.toml"),
    ],
)
def test_clock_offsets_that_cannot_be_used(analyze, golden, asked, message):
    with pytest.raises(ConfigurationError, match=message):
        analyze(golden("talker_listener"), "--clock-offset", asked)


def test_clock_offsets_of_a_file(analyze, golden, tmp_path):
    (tmp_path / "clocks.toml").write_text("vm = 1000\n")
    shifted = tmp_path / "shifted"
    analyze(golden("talker_listener"), "--clock-offset", "clocks.toml", "--output", shifted)
    analyze(golden("talker_listener"), "--output", tmp_path / "plain")
    difference = read_model(shifted).takes["time_ns"] - read_model(tmp_path / "plain").takes["time_ns"]
    assert difference.unique().to_list() == [1000]
