"""Watch options of the instruments' commands."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.cli import instruments
from pytest_ldos.cli.instruments import Run, takes_settings
from pytest_ldos.host.availability import Availability
from pytest_ldos.instruments import MODULES
from pytest_ldos.instruments.study import Instrument
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import judge_alone
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.trial.artifacts import read_trials
from pytest_ldos.scenario.fields import described
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


@dataclass(frozen=True)
class SteadySpec:
    size: int = field(default=1, metadata=described("Bytes of a message."))


INSTRUMENT = Instrument(
    name="steady",
    spec=SteadySpec,
    quantities=(HALF_TRIP, RATE),
    available=lambda spec: Availability(True),
    measure=measure,
)
app = typer.Typer()


@app.callback()
def main() -> None: ...


@app.command()
@takes_settings(SteadySpec)
def steady(spec: SteadySpec, run: Run) -> None:
    """Measure."""
    run(INSTRUMENT, spec)


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("instrument", MODULES)
def test_every_instruments_command_has_watch_options(instrument):
    result = CliRunner().invoke(ldos, [instrument.replace("_", "-"), "--help"])
    assert result.exit_code == 0, result.output
    for option in ("--profile", "--syscalls"):
        assert option in result.output


def test_watch_options_are_added_to_the_commands_own():
    helped = run("steady", "--help")
    for option in ("--size", "--profile", "--profiler", "--profile-rate", "--syscalls"):
        assert option in helped


@pytest.fixture
def asked(monkeypatch) -> list[tuple[WatchSpec, Path]]:
    """Requests to watch, which measure nothing."""
    found: list[tuple[WatchSpec, Path]] = []

    def watched(spec, folder, drawings, measure):
        found.append((spec, folder))
        return study()

    monkeypatch.setattr(instruments, "measure_watched", watched)
    return found


def test_nothing_is_watched_by_default(asked):
    run("steady")
    assert asked == []


def test_watch_request_reaches_the_measurement(asked, tmp_path):
    run("steady", "--profile", tmp_path, "--profiler", "py-spy", "--profile-rate", 50)
    assert asked == [(WatchSpec(profile=True, profiler=ProfilerKind.PY_SPY, rate_hz=50), tmp_path)]


def test_two_folders_are_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="name two folders"):
        CliRunner().invoke(app, ["steady", "--profile", "a", "--syscalls", "b"], catch_exceptions=False)


@needs_watchers
def test_watched_measurement_is_recorded_as_watched(tmp_path):
    watched, record, output = tmp_path / "watched", tmp_path / "rounds.json", tmp_path / "out.json"
    run("steady", "--profile", watched, "--syscalls", watched, "--record", record, "--output", output)
    found = json.loads(output.read_text())
    assert "clock_nanosleep" in {row["call"] for row in found["tables"]["system_calls"]["rows"]}
    assert any(f"samples (perf at 99 Hz and strace): {watched}" in note for note in found["notes"])
    assert {"flame.svg", "profile.speedscope.json", "syscalls.txt"} <= {each.name for each in watched.iterdir()}
    assert judge_alone(read_trials(record), Policy()).verdict is Verdict.INVALID
