"""The generated pages are what the model says, and the model is in them."""

from __future__ import annotations

import dataclasses
import importlib
import re
from typing import Any, get_args

import pytest
import typer
from markdown_it import MarkdownIt

from docs.generate.attributes import constants_of, members_of
from docs.generate.classes import fields
from docs.generate.marks import fixtures_of
from docs.generate.messages import KINDS
from docs.generate.pages import DOCS, render_pages
from docs.generate.verdicts import MEANINGS
from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.ros2 import FIELDS, KERNEL_FIELDS, LinkSpec, Marker, PathSpec
from pytest_ldos.campaign.cells import known_addresses
from pytest_ldos.instruments import MODULES, find_instrument
from pytest_ldos.judge.baseline.history import SCHEMA as HISTORY_COLUMNS
from pytest_ldos.judge.baseline.key import Calibration
from pytest_ldos.judge.gate import reasons as why
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.load.protocol import IMPLEMENTATIONS, GroupedProof, LoadProof
from pytest_ldos.measure.metrics import model as sources
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.trial.record import MotionTrial, TrialSet
from pytest_ldos.plugin import hooks
from pytest_ldos.plugin.options import add_options, describe_marks
from pytest_ldos.scenario.loads import LOAD_SPECS
from pytest_ldos.scenario.metrics import DeadlineSpec
from pytest_ldos.scenario.model import FaultSpec, Ros2Spec, StackSpec
from pytest_ldos.scenario.options import OPTIONS, OTHER_VARIABLES
from pytest_ldos.scenario.scenario_table import BaseSpec
from pytest_ldos.scenario.settings import GATE_KEYS, TABLES
from pytest_ldos.show.report.reasons import ELLIPSIS, WORDINGS
from pytest_ldos.trace.execution.model import ENTITIES, INSTANCES
from pytest_ldos.trace.flow.graph import LINKS
from tests.builders.command_line import app
from tests.builders.reasons import REASONS

PAGES = render_pages()
TEXT = "\n".join(PAGES.values())


@pytest.mark.parametrize("name", PAGES)
def test_page_matches_the_model(name):
    assert (DOCS / name).read_text("utf-8") == PAGES[name], f"{name} is stale: make reference"


@pytest.mark.parametrize("kind", LOAD_SPECS)
def test_every_field_of_every_proof(kind):
    section = TEXT.partition(f"## `loads.{kind}`\n")[2].partition("\n## ")[0]
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
    tables = {"faults", "ros2", "stimuli", "links", "path"}
    fields = {field.name for field in dataclasses.fields(spec)} - tables
    assert {name for name in fields if f"\n| `{name}` | " not in TEXT} == set()


def test_every_setting_that_can_be_swept():
    loads = {
        f"loads.{address.partition('.')[0]}" for address in known_addresses() if address.partition(".")[0] in LOAD_SPECS
    }
    assert {name for name in loads if f"## `{name}`" not in TEXT} == set()
    last = {address.rpartition(".")[2] for address in known_addresses()} - {"NAME", "deadlines"}
    assert last <= {cell.split(" ")[0] for cell in cells()}


def test_every_table():
    headings = "".join(line for line in TEXT.splitlines(keepends=True) if line.startswith("#"))
    assert {name for name in TABLES if f"tool.ldos.{name}" not in headings} == set()
    assert {f"| `{key}` |" for key in GATE_KEYS if f"| `{key}` |" not in TEXT} == set()


def test_every_mark_and_fixture_and_exit_code():
    assert set(describe_marks({"baseline": "the arm alone"})) <= cells()
    assert {name for name, _ in fixtures_of(hooks) if f"\n| `{name}` | " not in TEXT} == set()
    ours = {code for name, code in vars(exit_codes).items() if name.isupper()}
    assert ours == MEANINGS.keys()
    assert {code for code in ours if f"\n| {code} | " not in TEXT} == set()


def commands(command: Any, name: str) -> list[str]:
    below = getattr(command, "commands", {})
    return [each for key, found in below.items() for each in commands(found, f"{name} {key}")] or [name]


def test_every_command_as_it_is_called():
    called = commands(typer.main.get_command(app), "ldos")
    assert len(called) > 20
    assert [name for name in called if f"## `{name}`\n" not in TEXT] == []


def test_a_field_without_a_text_is_refused():
    @dataclasses.dataclass(frozen=True)
    class Incomplete:
        """Attributes:
        described: what it is.
        """

        described: int = 1
        undescribed: int = 2

    with pytest.raises(SystemExit, match=r"Incomplete\.undescribed has no text"):
        list(fields(Incomplete))


def test_every_metric_and_event_and_column():
    assert {name for name in METRICS if f"| **{name}** " not in TEXT} == set()
    assert {name for name in {**FIELDS, **KERNEL_FIELDS} if f"| `{name}` | " not in TEXT} == set()
    tables = {**ENTITIES, **INSTANCES, **LINKS}
    sections = dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^#|\Z)", PAGES["reference/tables.md"], re.MULTILINE | re.DOTALL))
    assert sections.keys() == tables.keys()
    missing = {
        f"{name}.{column}"
        for name, columns in tables.items()
        for column in columns
        if f"| `{column}` |" not in sections[name]
    }
    assert missing == set()


def test_every_field_of_a_record():
    records = PAGES["reference/records.md"]
    for kind in (TrialSet, MotionTrial, Calibration):
        assert {each.name for each in dataclasses.fields(kind) if f"| `{each.name}` |" not in records} == set()
    assert {name for name in HISTORY_COLUMNS if f"| `{name}` |" not in records} == set()


def test_a_text_below_a_constant():
    texts = {each: text for each, text in constants_of(sources) if isinstance(each, sources.Source)}
    assert texts[sources.CONTROL_PROBE] == "``ldos:control_cycle``."


def test_the_text_of_the_next_constant_is_not_its_own(tmp_path, monkeypatch):
    (tmp_path / "described_below.py").write_text('BARE: int = 1\nDESCRIBED: int = 2\n"""Of the second."""\n')
    monkeypatch.syspath_prepend(tmp_path)
    assert list(constants_of(importlib.import_module("described_below"))) == [(1, ""), (2, "Of the second.")]


def test_a_text_below_a_member():
    texts = members_of(Marker)
    assert {*texts} == {each.value for each in Marker}
    assert all(texts.values())


@pytest.mark.parametrize(("reason", "sentence"), REASONS)
def test_pattern_of_each_reason_matches_its_sentence(reason, sentence):
    pattern = re.escape(WORDINGS[type(reason)].pattern).replace(ELLIPSIS, ".*")
    assert re.fullmatch(pattern, sentence)


def test_every_reason_and_verdict_and_error_has_its_place():
    assert {*WORDINGS} == {*get_args(why.Reason)}
    verdicts, errors = ((DOCS / "troubleshooting" / f"{name}.md").read_text("utf-8") for name in ("verdicts", "errors"))
    assert {each for each in Verdict if f"\n## {each.value}\n" not in verdicts} == set()
    assert {
        kind.__name__ for kind in KINDS if kind is not LdosError and f"\n## {kind.__name__}\n" not in errors
    } == set()


def test_an_error_is_in_the_index_with_its_remedy():
    index = PAGES["troubleshooting/messages.md"]
    assert "| `all … trials failed (…)` | `make the scenario work first: pytest -m baseline` |" in index
    assert "| `goal … has no joints` | `give the position of every joint, in radians` |" in index, "by require()"
    assert index.count("\n| `") > 150
