"""Watch options of the instruments' commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.campaign.instruments import MODULES
from pytest_ldos.cli.instruments import Outputs, RecordOption, asked_watch, run_instrument, with_watch_options
from pytest_ldos.cli.say import FormatOption, OutputOption
from pytest_ldos.host.availability import Availability
from pytest_ldos.instruments.study import Instrument
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import judge_alone
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.trial.artifacts import read_trials
from pytest_ldos.scenario.model import WatchSpec
from pytest_ldos.scenario.words import ProfilerKind
from tests.builders.busy import busy_process, run_for
from tests.builders.command_line import app as ldos
from tests.builders.studies import HALF_TRIP, RATE, study
from tests.builders.watchers import needs_watchers


def measure(spec, progress):
    with busy_process(gently=True) as process:
        run_for(process, 0.15)
    return study()


INSTRUMENT = Instrument(
    name="steady", spec=dict, quantities=(HALF_TRIP, RATE), available=lambda spec: Availability(True), measure=measure
)
app = typer.Typer()


@app.callback()
def main() -> None: ...


@app.command()
@with_watch_options
def steady(
    *,
    size: Annotated[int, typer.Option(help="Bytes of a message.")] = 1,
    kind: FormatOption = None,
    output: OutputOption = None,
    record: RecordOption = None,
) -> None:
    """Measure."""
    run_instrument(INSTRUMENT, {"size": size}, Outputs.of(output=output, output_format=kind, record=record))


@app.command()
@with_watch_options
def asked() -> None:
    """The request."""
    typer.echo(repr(asked_watch()))


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("instrument", MODULES)
def test_every_instruments_command_has_them(instrument):
    result = CliRunner().invoke(ldos, [instrument.replace("_", "-"), "--help"])
    assert result.exit_code == 0, result.output
    for option in ("--profile", "--syscalls"):
        assert option in result.output


def test_watch_options_are_added_to_the_commands_own():
    helped = run("steady", "--help")
    for option in ("--size", "--profile", "--profiler", "--profile-rate", "--syscalls"):
        assert option in helped


def test_nothing_is_watched_unasked():
    assert run("asked").strip() == "None"


def test_watch_request_is_available_while_the_command_runs(tmp_path):
    said = run("asked", "--profile", tmp_path, "--profiler", "py-spy", "--profile-rate", 50)
    spec = WatchSpec(profile=True, profiler=ProfilerKind.PY_SPY, rate_hz=50)
    assert said.strip() == f"WatchRequest(spec={spec!r}, folder={Path(tmp_path)!r})"
    assert asked_watch() is None


def test_two_folders_are_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="name two folders"):
        CliRunner().invoke(app, ["asked", "--profile", "a", "--syscalls", "b"], catch_exceptions=False)


@needs_watchers
def test_a_measurement_is_watched_and_its_record_says_so(tmp_path):
    watched, record, output = tmp_path / "watched", tmp_path / "rounds.json", tmp_path / "out.json"
    run("steady", "--profile", watched, "--syscalls", watched, "--record", record, "--output", output)
    found = json.loads(output.read_text())
    assert "clock_nanosleep" in {row["call"] for row in found["tables"]["system_calls"]["rows"]}
    assert any(f"samples (perf at 99 Hz and strace): {watched}" in note for note in found["notes"])
    assert {"flame.svg", "profile.speedscope.json", "syscalls.txt"} <= {each.name for each in watched.iterdir()}
    assert judge_alone(read_trials(record), Policy()).verdict is Verdict.INVALID
