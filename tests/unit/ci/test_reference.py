"""``REFERENCE.md`` is what the model says, and the model is in it."""

from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
from markdown_it import MarkdownIt

from pytest_ldos.base import exit_codes
from pytest_ldos.base.paths import LinkSpec, PathSpec
from pytest_ldos.campaign.instruments import MODULES, find_instrument
from pytest_ldos.measure.load.choose import IMPLEMENTATIONS
from pytest_ldos.measure.load.protocol import LoadProof
from pytest_ldos.measure.load.scheduler_group import GroupedProof
from pytest_ldos.plugin import fixtures
from pytest_ldos.plugin.marks import describe_marks
from pytest_ldos.plugin.options import add_options
from pytest_ldos.scenario.addresses import known_addresses
from pytest_ldos.scenario.base import BaseSpec
from pytest_ldos.scenario.deadlines import DeadlineSpec
from pytest_ldos.scenario.loads.registry import LOAD_SPECS
from pytest_ldos.scenario.model import FaultSpec, StackSpec
from pytest_ldos.scenario.options import OPTIONS, OTHER_VARIABLES
from pytest_ldos.scenario.ros2 import Ros2Spec
from pytest_ldos.scenario.settings import GATE_KEYS, TABLES
from tests.builders.command_line import app

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "REFERENCE.md").read_text("utf-8")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / ".ci" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_file_is_what_the_model_says(script):
    assert script.reference() == TEXT, "REFERENCE.md is stale: make reference"


def test_the_readmes_tables_are_what_the_registries_say(script):
    readme = (ROOT / "README.md").read_text("utf-8")
    assert script.with_tables(readme) == readme, "README.md is stale: make reference"
    assert script.with_tables(readme.replace("| **T4** ", "| **T0** ")) == readme


def test_a_table_without_a_place_is_refused(script):
    with pytest.raises(SystemExit, match="no place for the table of loads"):
        script.with_tables("<!-- metrics: make reference --><!-- /metrics -->".replace("--><", "-->\n<"))


@pytest.mark.parametrize("kind", LOAD_SPECS)
def test_every_field_of_every_proof(kind):
    section = TEXT.partition(f"#### `loads.{kind}`\n")[2].partition("\n#### ")[0]
    proof = IMPLEMENTATIONS[kind].proof
    assert proof not in {LoadProof, GroupedProof}
    own = {field.name for field in dataclasses.fields(proof)} - {
        field.name for field in dataclasses.fields(GroupedProof)
    }
    assert {name for name in own if f"`{name}`" not in section} == set()


def cells() -> set[str]:
    """The text of all code spans in tables, with what stands behind a flag as one."""
    tokens = [child for token in MarkdownIt("gfm-like").parse(TEXT) for child in token.children or ()]
    return {token.content for token in tokens if token.type == "code_inline"}


class Group:
    def __init__(self) -> None:
        self.flags: list[str] = []

    def getgroup(self, *_: str) -> Group:
        return self

    def addoption(self, flag: str, **_: Any) -> None:
        self.flags.append(flag)


def test_every_registered_option_with_its_variable_and_key():
    registered = Group()
    add_options(registered)
    assert len(registered.flags) == len(OPTIONS)
    known = {cell.split(" ")[0] for cell in cells()}
    assert known >= set(registered.flags)
    assert known >= {option.variable for option in OPTIONS.values()} | set(OTHER_VARIABLES)
    assert known >= set(OPTIONS) - {"config", "base"}


SPECS = [
    *LOAD_SPECS.values(),
    BaseSpec,
    DeadlineSpec,
    FaultSpec,
    LinkSpec,
    PathSpec,
    Ros2Spec,
    StackSpec,
    *(find_instrument(name).spec for name in MODULES),
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.__name__)
def test_every_field_of_every_table(spec):
    tables = {"faults", "ros2", "links", "path"}
    fields = {field.name for field in dataclasses.fields(spec)} - tables
    assert {name for name in fields if f"\n| `{name}` | " not in TEXT} == set()


def test_every_setting_that_can_be_swept():
    loads = {
        f"loads.{address.partition('.')[0]}" for address in known_addresses() if address.partition(".")[0] in LOAD_SPECS
    }
    assert {name for name in loads if f"#### `{name}`" not in TEXT} == set()
    last = {address.rpartition(".")[2] for address in known_addresses()} - {"NAME", "deadlines"}
    assert last <= {cell.split(" ")[0] for cell in cells()}


def test_every_table():
    headings = "".join(line for line in TEXT.splitlines(keepends=True) if line.startswith("#"))
    assert {name for name in TABLES if f"tool.ldos.{name}" not in headings} == set()
    assert {f"| `{key}` |" for key in GATE_KEYS if f"| `{key}` |" not in TEXT} == set()


def test_every_mark_and_fixture_and_exit_code(script):
    assert set(describe_marks({"baseline": "the arm alone"})) <= cells()
    assert {name for name, _ in script.fixtures_of(fixtures) if f"\n| `{name}` | " not in TEXT} == set()
    assert {code for code in exit_codes.MEANINGS if f"\n| {code} | " not in TEXT} == set()


def commands(command: Any, name: str) -> list[str]:
    below = getattr(command, "commands", {})
    return [each for key, found in below.items() for each in commands(found, f"{name} {key}")] or [name]


def test_every_command_as_it_is_called():
    called = commands(typer.main.get_command(app), "ldos")
    assert len(called) > 20
    assert [name for name in called if f"### `{name}`\n" not in TEXT] == []


def test_a_field_without_a_text_is_refused(script):
    @dataclasses.dataclass(frozen=True)
    class Untold:
        """Attributes:
        told: what it is.
        """

        told: int = 1
        untold: int = 2

    with pytest.raises(SystemExit, match=r"Untold\.untold has no text"):
        list(script._fields(Untold))
