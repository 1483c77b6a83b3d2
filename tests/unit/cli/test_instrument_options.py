"""An instrument's option is a field of its spec: command line, marks and reference have it from there."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from docs.generate.classes import fields
from docs.generate.commands import parameters
from pytest_ldos.cli import instruments
from pytest_ldos.cli.instruments import Run, takes_settings
from pytest_ldos.cli.main import Command, name_values
from pytest_ldos.instruments import MODULES, find_instrument
from pytest_ldos.scenario.fields import build_spec, described, described_fields


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, kw_only=True)
class LampSpec:
    """A lamp."""

    name: str = field(metadata=described("Name of the lamp.", is_argument=True))
    colour: Colour = field(default=Colour.RED, metadata=described("Colour of its light."))
    rate_hz: float = field(default=5.0, metadata=described("Flashes a second.", "--rate", default=7.0))
    on: bool = field(default=True, metadata=described("Light it."))
    bulbs: str = field(default="", metadata=described("Bulbs, with commas. [default: all]"))
    log: str = field(default="", metadata=described("Folder for a log.", is_path=True))


@pytest.fixture
def lamp() -> Any:
    """Runs the command of an instrument with these settings; returns what it was given."""
    given: list[tuple[LampSpec, dict[str, Any]]] = []

    @takes_settings(LampSpec)
    def lamp(spec: LampSpec, run: Run) -> None:
        """Light a lamp."""
        assert isinstance(run, partial)
        assert run.func is instruments.run_instrument
        given.append((spec, run.keywords))

    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command(cls=Command)(lamp)
    name_values(app)

    def run(*arguments: str) -> Any:
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        return result, given[-1] if given else None

    vars(run)["command"] = lamp
    return run


def test_the_command_makes_the_spec(lamp):
    assert lamp("desk")[1][0] == LampSpec(name="desk", rate_hz=7.0)
    arguments = ("desk", "--colour", "blue", "--rate", "2", "--no-on", "--bulbs", "a,b", "--log", "logs")
    _, (spec, outputs) = lamp(*arguments, "--parquet", "tables", "--format", "json")
    assert spec == LampSpec(name="desk", colour=Colour.BLUE, rate_hz=2.0, on=False, bulbs="a,b", log="logs")
    assert (outputs["parquet"], outputs["output_format"]) == (Path("tables"), "json")


def test_help_has_the_descriptions(lamp):
    shown = lamp("--help")[0].output
    assert [text for each in described_fields(LampSpec).values() if (text := each.meaning) not in shown] == []
    assert all(flag in shown for flag in ("--colour red|blue", "--rate NUMBER", "--on / --no-on", "--log DIR", "NAME"))


def test_invalid_and_missing_values_are_refused(lamp):
    assert lamp("desk", "--colour", "green")[0].exit_code == 2
    assert lamp()[0].exit_code == 2


def test_a_mark_makes_the_same_spec():
    settings = {"name": "desk", "colour": "blue", "rate_hz": 2}
    assert build_spec(LampSpec, settings, "of lamp:") == LampSpec(name="desk", colour=Colour.BLUE, rate_hz=2.0)


def test_reference_has_the_settings(lamp):
    of_mark = list(fields(LampSpec))
    assert "| `rate_hz` | a number, Hz | `5` | Flashes a second. |" in of_mark
    assert "| `bulbs` | a text | all | Bulbs, with commas. |" in of_mark
    rows = list(parameters(lamp.command))
    assert ("`--rate`", "a number", "`7`", "Flashes a second.") in rows
    assert ("`NAME`", "a text", "must be given", "Name of the lamp.") in rows
    assert ("`--log`", "a path", "", "Folder for a log.") in rows


@pytest.mark.parametrize("name", MODULES)
def test_every_setting_of_an_instrument_is_described(name):
    spec = find_instrument(name).spec
    assert set(described_fields(spec)) == {each.name for each in dataclasses.fields(spec)}
