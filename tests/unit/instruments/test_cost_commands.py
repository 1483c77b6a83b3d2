"""The commands `ldos cpu-cost` and `ldos tracing-cost`; other tests cover their measurements."""

from __future__ import annotations

import json

import pytest

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.instruments import find_instrument
from tests.builders.command_line import invoke_ldos
from tests.builders.needs import needs_embedded


@pytest.fixture
def ldos(monkeypatch, tmp_path):
    """Runs a command in an empty project, without ROS; raises errors that `run` would print."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("AMENT_PREFIX_PATH", "")

    def run(*arguments):
        return invoke_ldos(*arguments)

    return run


@pytest.mark.parametrize("name", ["cpu_cost", "tracing_cost"])
def test_instruments_are_known_by_their_marks(name):
    instrument = find_instrument(name)
    assert instrument.name == name
    assert instrument.spec()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cpu-cost", "--nodes", 99), "99 nodes"),
        (("cpu-cost", "--rungs", "ddss"), "ddss"),
        (("tracing-cost", "--sizes", "big"), "sizes_kib is 'big'"),
        (("tracing-cost", "--output", "a.docx"), "a.docx"),
    ],
)
def test_invalid_settings_are_refused_before_the_start(ldos, arguments, message):
    with pytest.raises(ConfigurationError, match=message):
        ldos(*arguments)


@pytest.mark.parametrize("command", ["cpu-cost", "tracing-cost"])
def test_missing_layer_exits_with_11_and_a_remedy(ldos, command):
    result = ldos(command, "--layer", "ros2")
    assert result.exit_code == exit_codes.INVALID
    assert "cannot measure: " in result.stderr


@pytest.mark.acceptance
@needs_embedded
@pytest.mark.measures_time
def test_ladder_is_shown_and_stored(ldos, tmp_path):
    traffic = ("--topics", 2, "--subscribers", 1, "--rate", 50, "--seconds", 0.1, "--rounds", 2, "--starts", 1)
    result = ldos("cpu-cost", "--rungs", "in_process,dds", *traffic, "--output", "cost.json", "--record", "rounds.json")
    assert result.exit_code == 0
    study = json.loads((tmp_path / "cost.json").read_text("utf-8"))
    assert study["instrument"] == "cpu-cost"
    assert any("rclcpp was not measured" in note for note in study["notes"])
    assert len(json.loads((tmp_path / "rounds.json").read_text("utf-8"))["trials"]) == 4
