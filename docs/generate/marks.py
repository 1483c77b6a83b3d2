"""The pages of marks, and of fixtures and hooks."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType

from docs.generate.classes import fields, paragraph
from docs.generate.text import code, flowing, prose, table
from pytest_ldos.instruments import MODULES, find_instrument
from pytest_ldos.plugin import hooks, options
from pytest_ldos.plugin.options import describe_marks, mark_name
from pytest_ldos.scenario.words import SCENARIO_DESCRIPTIONS


def marks_page() -> Iterator[str]:
    """Every mark, and the settings of those that take some."""
    yield from ("# Marks", "", "`pytest --markers` prints those of a project, its own scenarios included.", "")
    yield from (
        "`name` is what a test is measured as and judged by: its [baseline's name](../how-to/keep-baselines.md#names),",
        "by default that of its scenario or instrument. Tests that would share a baseline are refused. What",
        "the mark of a parameter set does not give is taken from the mark of its function, class or module.",
        "",
    )
    yield from table(
        ("mark", "meaning"), [(code(name), text) for name, text in describe_marks(SCENARIO_DESCRIPTIONS).items()]
    )
    yield ""
    for name in MODULES:
        spec = find_instrument(name).spec
        yield from (f"## Settings of `{mark_name(name)}`", "", paragraph(spec), "")
        yield from fields(spec)


def fixtures_page() -> Iterator[str]:
    """Every fixture and hook."""
    yield from ("# Fixtures and hooks", "", "## Fixtures", "")
    yield from table(("fixture", "meaning"), [(code(name), flowing(text)) for name, text in fixtures_of(hooks)])
    yield ""
    yield from _hooks()


def fixtures_of(module: ModuleType) -> list[tuple[str, str]]:
    """Names and documentation of the fixtures that a module has."""
    found = [(name, each) for name, each in vars(module).items() if type(each).__name__ == "FixtureFunctionDefinition"]
    return sorted((name, inspect.getdoc(each._get_wrapped_function()) or "") for name, each in found)  # noqa: SLF001


def _hooks() -> Iterator[str]:
    yield from ("## Hooks", "", "Of a `conftest.py`, or of another plugin.", "")
    for name, each in vars(options).items():
        if name.startswith("pytest_ldos_"):
            yield from (f"### `{name}()`", "", *prose(inspect.getdoc(each) or ""))
