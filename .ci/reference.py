"""The reference of all settings, marks, fixtures and commands, generated from the model they are read by.

Usage: python .ci/reference.py; writes REFERENCE.md, and the tables of README.md that stand between marks. A test holds
both files to what this would write.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from textwrap import dedent
from types import ModuleType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

import pytest
import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.paths import LinkSpec, PathSpec
from pytest_ldos.base.plain import field_types
from pytest_ldos.campaign.instruments import MODULES, find_instrument
from pytest_ldos.cli.main import make_app
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.measure.load.choose import IMPLEMENTATIONS
from pytest_ldos.measure.load.protocol import LoadProof
from pytest_ldos.measure.load.scheduler_group import GroupedProof
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.plugin import fixtures, hookspecs
from pytest_ldos.plugin.marks import describe_marks, mark_name
from pytest_ldos.scenario.base import BaseSpec
from pytest_ldos.scenario.deadlines import DeadlineSpec
from pytest_ldos.scenario.described import described_fields
from pytest_ldos.scenario.fields import parse_field
from pytest_ldos.scenario.loads.registry import LOAD_SPECS
from pytest_ldos.scenario.model import FaultSpec, StackSpec
from pytest_ldos.scenario.options import OPTIONS, OTHER_VARIABLES, OWN_FILE, Option
from pytest_ldos.scenario.ros2 import Ros2Spec
from pytest_ldos.scenario.scenario_table import BUILT_IN_SCENARIOS
from pytest_ldos.scenario.settings import GATE_KEYS, TABLES
from pytest_ldos.scenario.words import SCENARIO_DESCRIPTIONS
from pytest_ldos.show.page.markdown_parts import Markdown, grid

_DEFAULT: Final = re.compile(r"\s*[(\[]default: (?P<value>.+)[)\]]$")
_UNITS: Final = {
    "_mb_s": "10^6 bytes/s",
    "_us": "µs",
    "_ms": "ms",
    "_s": "s",
    "_seconds": "s",
    "_hz": "Hz",
    "_mb": "MB",
    "_mbps": "10^6 bit/s",
    "_bytes": "bytes",
    "_percent": "%",
    "_percentage": "%",
    "_absolute": "µs",
}
_OF_WHOLE: Final = frozenset({"faults", "ros2"})
"""Fields of the stack that are tables of their own, or stand in its table."""


# --- the document ------------------------------------------------------------------------


def reference() -> str:
    """All of it, as Markdown."""
    parts = (_settings, _tables, _marks, _fixtures, _hooks, _exit_codes, _commands)
    return "\n".join([_HEAD, *(line for part in parts for line in part()), ""])


_HEAD: Final = """# Reference

Every setting, mark, fixture and command of pytest-ldos. This file is generated (`make reference`) from what reads the
settings; [README](README.md) says what they are good for.
"""


def _settings() -> Iterator[str]:
    yield from (
        "## Settings",
        "",
        "Strongest first: command line, environment, mark of a test, `[tool.ldos.scenarios.NAME]`, `[tool.ldos]`, and",
        "the default. `[tool.ldos]` lies in `pyproject.toml`;",
        f"in `{OWN_FILE}` its keys stand at the top. What is unknown or has a wrong value is refused before anything",
        "is measured.",
        "",
        "Each is an option of pytest (`--ldos-max-trials 40`), a variable (`LDOS_MAX_TRIALS=40`) and a key",
        "(`max_trials = 40`). Those with ● can also be set for one scenario, and by the mark of a test",
        "(`@pytest.mark.baseline(trials=20)`).",
        "",
    )
    yield from _table(
        ("option, variable, key", "value", "default", "meaning"),
        [_row_of(option) for option in OPTIONS.values()],
    )
    yield from ("", "Other variables of the environment:", "")
    yield from _table(("variable", "meaning"), [(_code(name), text) for name, text in OTHER_VARIABLES.items()])
    yield ""


def _row_of(option: Option) -> tuple[str, ...]:
    text, default = _without_default(option.help)
    return (
        f"{_code(f'{option.flag} {option.metavar}'.strip())} {_code(option.variable)} {_key_of(option)}".strip(),
        _value_of(option),
        default or _shown(option.default) or ("off" if option.is_flag else "none"),
        text,
    )


def _key_of(option: Option) -> str:
    """In TOML; ``base`` is a table there, and ``config`` says where it is."""
    if option.name == "config" or (option.name in TABLES and option.name != "stack"):
        return ""
    return _code(option.name) + (" ●" if option.per_scenario else "")


def _value_of(option: Option) -> str:
    """The values that its parser takes, in its own words."""
    for impossible in (-1, object()):
        try:
            option.parse(impossible)
        except ValueError as error:
            return str(error)
    return "a text"


def _tables() -> Iterator[str]:
    stack = {name: text for name, text in _documented(StackSpec).items() if name not in _OF_WHOLE}
    yield from (
        "## Tables of `[tool.ldos]`",
        "",
        "### `[tool.ldos.scenarios.NAME]`",
        "",
        "A scenario of one's own, or what is to be different of one that is built in. `A+B` are several at once.",
        "",
    )
    yield from _table(("scenario", "what it is"), _built_in_rows())
    per_scenario = ", ".join(_code(option.name) for option in OPTIONS.values() if option.per_scenario)
    yield ""
    yield from _table(
        ("key", "value", "meaning"),
        [
            (per_scenario, "as above", "settings of this scenario alone"),
            (_code("description"), "a text", "what is said of it in `pytest --markers`"),
            (
                _code("loads"),
                "a table, see below",
                "what the arm is measured beside; `cpu_load = true` is that load as it is",
            ),
            (_code("deadlines"), "a table, see below", "what is expected of causal paths"),
        ],
    )
    yield ""
    yield from (
        "A load proves what it did (`flood.proof` in a test, `loads` in a record). Each proof has the following; a",
        "group, where the load has processes.",
        "",
    )
    yield from _table(("field", "unit", "meaning"), _proven(GroupedProof))
    yield ""
    for kind, spec in LOAD_SPECS.items():
        yield from (f"#### `loads.{kind}`", "", _paragraph(spec), "")
        yield from _fields(spec)
        yield from _proof_of(kind)
    yield from (
        "#### `deadlines.PATH`",
        "",
        'Milliseconds, or a table: `"state feedback" = { ms = 10, share = 0.95 }`.',
        "",
    )
    yield from _fields(DeadlineSpec, but={"path"})
    yield from ("### `[tool.ldos.stack]`", "", f'{_paragraph(StackSpec)} `stack = "ros2"` alone names its kind.', "")
    yield from _fields(StackSpec, only=stack)
    yield from ("Of a stack of ROS 2 nodes, in the same table:", "")
    yield from _fields(Ros2Spec)
    yield from ("#### `[tool.ldos.stack.faults]`", "", _paragraph(FaultSpec), "")
    yield from _fields(FaultSpec)
    yield from ("### `[[tool.ldos.paths]]`", "", _paragraph(PathSpec), "")
    yield from _fields(PathSpec, but={"links"})
    yield from ("#### `[[tool.ldos.paths.links]]`", "", _paragraph(LinkSpec), "")
    yield from _fields(LinkSpec)
    yield from ("### `[tool.ldos.gate]`", "", _paragraph(Policy), "")
    yield from _fields(Policy, only=sorted(GATE_KEYS))
    yield from ("### `[tool.ldos.base]`", "", _paragraph(BaseSpec), "")
    yield from _fields(BaseSpec)


def _proof_of(kind: str) -> Iterator[str]:
    """The fields that the proof of one load has besides."""
    rows = _proven(IMPLEMENTATIONS[kind].proof, but=_documented_all(GroupedProof), asked=field_types(LOAD_SPECS[kind]))
    if rows:
        yield from ("Its proof, beside what was asked:", "")
        yield from _table(("field", "unit", "meaning"), rows)
        yield ""


def _proven(proof: type[LoadProof], *, but: Iterable[str] = (), asked: Iterable[str] = ()) -> list[tuple[str, ...]]:
    """Rows of a proof's fields.

    Raises:
        SystemExit: one is not documented, and no setting of the load.
    """
    described = _documented_all(proof)
    names = [each.name for each in dataclasses.fields(proof) if each.name not in but]
    for name in names:
        if name not in described and name not in asked:
            raise SystemExit(f"reference: {proof.__name__}.{name} has no text: describe it in the class")
    rows = groupby((name for name in names if name in described), key=lambda name: (described[name], _unit_of(name)))
    return [(", ".join(map(_code, alike)), unit, text) for (text, unit), alike in rows]


def _built_in_rows() -> list[tuple[str, str]]:
    return [
        (
            _code(name),
            text + (f" (`{', '.join(BUILT_IN_SCENARIOS[name].loads)}`)" if BUILT_IN_SCENARIOS[name].loads else ""),
        )
        for name, text in SCENARIO_DESCRIPTIONS.items()
    ]


def _marks() -> Iterator[str]:
    yield from ("## Marks", "")
    yield from _table(
        ("mark", "meaning"), [(_code(name), text) for name, text in describe_marks(SCENARIO_DESCRIPTIONS).items()]
    )
    yield ""
    for name in MODULES:
        spec = find_instrument(name).spec
        yield from (f"### Settings of `{mark_name(name)}`", "", _paragraph(spec), "")
        yield from _fields(spec)


def _fixtures() -> Iterator[str]:
    yield from ("## Fixtures", "")
    yield from _table(("fixture", "meaning"), [(_code(name), _flowing(text)) for name, text in fixtures_of(fixtures)])
    yield ""


def fixtures_of(module: ModuleType) -> list[tuple[str, str]]:
    """Names and documentation of the fixtures that a module has."""
    found = [(name, each) for name, each in vars(module).items() if type(each).__name__ == "FixtureFunctionDefinition"]
    return sorted((name, inspect.getdoc(each._get_wrapped_function()) or "") for name, each in found)  # noqa: SLF001


def _hooks() -> Iterator[str]:
    yield from ("## Hooks", "", "Of a `conftest.py`, or of another plugin.", "")
    for name, each in vars(hookspecs).items():
        if name.startswith("pytest_ldos_"):
            yield from (f"### `{name}()`", "", *_prose(inspect.getdoc(each) or ""))


def _exit_codes() -> Iterator[str]:
    yield from ("## Exit codes", "", "Of pytest and of `ldos`; pytest's own keep their meaning.", "")
    theirs = {int(code): code.name.lower().replace("_", " ") for code in pytest.ExitCode}
    known = sorted({*theirs, *exit_codes.MEANINGS})
    rows = [(str(code), theirs.get(code, ""), exit_codes.MEANINGS.get(code, "")) for code in known]
    yield from _table(("code", "pytest's own", "ours"), rows)
    yield ""


def _commands() -> Iterator[str]:
    yield from ("## Commands", "", "`ldos --version` says the version, `ldos COMMAND --help` what is said here.", "")
    for name, callback in commands_of(make_app(), "ldos"):
        text = inspect.getdoc(callback) or ""
        yield from (f"### `{name}`", "", *_prose(text))
        rows = list(_parameters(callback))
        if rows:
            yield from _table(("argument", "value", "default", "meaning"), rows)
            yield ""


# --- tables of README.md -----------------------------------------------------------------


def with_tables(readme: str) -> str:
    """The text with its tables as the registries have them, each between the marks of its name.

    Raises:
        SystemExit: the marks of one are not there.
    """
    for name, table in (("metrics", _metrics()), ("loads", _loads())):
        before, found, rest = readme.partition(f"<!-- {name}: make reference -->\n")
        _, closed, after = rest.partition(f"<!-- /{name} -->")
        if not (found and closed):
            raise SystemExit(f"reference: README.md has no place for the table of {name}")
        readme = "\n".join([before + found, *table, "", closed + after])
    return readme


def _metrics() -> Iterator[str]:
    return _table(
        ("metric", "from → to", "in", "largest MDE"),
        [
            (f"**{each.name}** {each.title}", each.definition, each.unit, f"{100 * each.largest_tolerable_mde:.0f} %")
            for each in METRICS.values()
        ],
    )


def _loads() -> Iterator[str]:
    return _table(
        ("load", "what it is", "settings"),
        [
            (f"[`{kind}`](REFERENCE.md#loads{kind})", _paragraph(spec), ", ".join(map(_code, field_types(spec))))
            for kind, spec in LOAD_SPECS.items()
        ],
    )


# --- commands ----------------------------------------------------------------------------


def commands_of(group: typer.Typer, name: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """All commands below one, by what is typed for them."""
    for command in group.registered_commands:
        assert command.callback is not None
        yield f"{name} {command.name or command.callback.__name__.replace('_', '-')}", command.callback
    for below in group.registered_groups:
        assert below.typer_instance is not None
        whole = f"{name} {below.name}"
        callback = below.typer_instance.registered_callback
        if callback is not None and callback.callback is not None:
            yield whole, callback.callback
        yield from commands_of(below.typer_instance, whole)


def _parameters(command: Callable[..., Any]) -> Iterator[tuple[str, ...]]:
    hints = get_type_hints(command, include_extras=True)
    for parameter in inspect.signature(command).parameters.values():
        annotation = hints[parameter.name]
        if get_origin(annotation) is not Annotated:
            continue  # the context that typer hands in
        kind, *extras = get_args(annotation)
        info = next(each for each in extras if isinstance(each, typer.models.ParameterInfo))
        text, default = _without_default(str(info.help or ""))
        if parameter.default is inspect.Parameter.empty:
            default = "must be given"
        elif not default:
            default = _shown(parameter.default)
        yield _code(_called(parameter, kind, info)), _kind_of(kind), default, text


def _called(parameter: inspect.Parameter, kind: Any, info: typer.models.ParameterInfo) -> str:
    """As it is typed."""
    if isinstance(info, typer.models.ArgumentInfo):
        return str(info.metavar or parameter.name.upper())
    declared = [each for each in (info.default, *(info.param_decls or ())) if isinstance(each, str)]
    plain = f"--{parameter.name.replace('_', '-')}"
    if kind is bool and not declared:
        return f"{plain} / --no-{plain[2:]}"
    return " ".join(declared or [plain])


def _kind_of(kind: Any) -> str:
    if get_origin(kind) in {Union, UnionType}:
        return _kind_of(next(each for each in get_args(kind) if each is not type(None)))
    if get_origin(kind) is list:
        return f"{_kind_of(get_args(kind)[0])}, several times"
    if kind is Path:
        return "a path"
    return "" if kind is bool else _field_value(kind)


# --- fields of specs ---------------------------------------------------------------------


def _fields(spec: type, *, only: Iterable[str] | None = None, but: Iterable[str] = ()) -> Iterator[str]:
    """The table of a spec's fields.

    Raises:
        SystemExit: one is not documented.
    """
    described = _documented(spec) | {name: each.meaning for name, each in described_fields(spec).items()}
    types = field_types(spec)
    names = [name for name in (types if only is None else only) if name not in set(but)]
    rows = []
    for name in names:
        if name not in described:
            raise SystemExit(
                f"reference: {spec.__name__}.{name} has no text: describe it with the field, or in the class"
            )
        value = ", ".join(filter(None, (_field_value(types[name]), _unit_of(name))))
        text, default = _without_default(described[name])
        rows.append((_code(name), value, default or _default_of(spec, name), text))
    yield from _table(("key", "value", "default", "meaning"), rows)
    yield ""


def _unit_of(name: str) -> str:
    """The unit at the end of a field's name; empty for none."""
    return next((unit for end, unit in _UNITS.items() if f"_{name}".endswith(end)), "")


def _field_value(kind: Any) -> str:
    """The values that a type takes, in the words of what refuses others."""
    if get_origin(kind) in {Union, UnionType} and type(None) in get_args(kind):
        return _field_value(next(each for each in get_args(kind) if each is not type(None)))
    if get_origin(kind) is tuple:
        return "a list of texts"
    if get_origin(kind) is not None and isinstance(get_origin(kind), type) and issubclass(get_origin(kind), Mapping):
        return "a table of numbers" if float in get_args(kind) else "a table of texts or numbers"
    try:
        parse_field(kind, object(), "")
    except ConfigurationError as error:
        return error.remedy.removeprefix("it must be ")
    raise SystemExit(f"reference: {kind} takes any value")


def _default_of(spec: type, name: str) -> str:
    field = next(each for each in dataclasses.fields(spec) if each.name == name)
    if field.default is not dataclasses.MISSING:
        return "none" if field.default is None else _code(_toml(field.default))
    if field.default_factory is dataclasses.MISSING:
        return "must be given"
    made = field.default_factory()
    return "empty" if isinstance(made, Mapping) else (inspect.getdoc(field.default_factory) or "").rstrip(".")


def _documented(spec: type) -> dict[str, str]:
    """The texts of a class on its attributes, by name."""
    text = inspect.getdoc(spec) or ""
    _, _, below = text.partition("Attributes:\n")
    section = re.split(r"\n(?=\S)", below)[0]
    found: dict[str, str] = {}
    for entry in re.split(r"\n(?=    \S)", section):
        names, separator, meaning = entry.strip().partition(": ")
        if separator:
            found.update(dict.fromkeys(names.split(", "), _flowing(meaning)))
    return found


def _documented_all(spec: type) -> dict[str, str]:
    """The same with the texts of its base classes."""
    return {name: text for each in reversed(spec.__mro__[:-1]) for name, text in _documented(each).items()}


def _paragraph(spec: type) -> str:
    """The text of a class on itself, without sections."""
    text = inspect.getdoc(spec) or ""
    return _flowing(re.split(r"\n\n(?:Attributes|Raises|Args):", text)[0].split("\n\n")[0])


# --- text --------------------------------------------------------------------------------


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    cells = ([Markdown(cell.replace("|", r"\|")) for cell in row] for row in rows)
    yield from grid([Markdown(title) for title in head], cells).splitlines()


def _prose(text: str) -> Iterator[str]:
    """Documentation as Markdown: what is indented is code, other paragraphs flow."""
    for is_code, paragraphs in groupby(text.split("\n\n"), key=lambda paragraph: paragraph.startswith("    ")):
        if is_code:
            yield from ("```python", dedent("\n\n".join(paragraphs)).rstrip(), "```", "")
        else:
            for paragraph in paragraphs:
                yield from (_flowing(re.sub("::$", ":", paragraph)), "")


def _flowing(text: str) -> str:
    """A paragraph in one line, with Markdown's code spans."""
    return re.sub(r"``(.+?)``", r"`\1`", " ".join(text.split()))


def _without_default(text: str) -> tuple[str, str]:
    """A help text and the default that it names, if any."""
    found = _DEFAULT.search(text)
    return (text[: found.start()], found["value"]) if found else (text, "")


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _shown(default: Any) -> str:
    """A default; nothing for none, and for a switch that is off."""
    is_none = default is None or default is False or default in {"", ()}
    return "" if is_none else _code(_toml(default))


def _toml(value: Any) -> str:
    if isinstance(value, StrEnum | Path):
        return str(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, float):
        return f"{value:g}"
    return f'"{value}"' if isinstance(value, str) else str(value)


if __name__ == "__main__":
    Path("REFERENCE.md").write_text(reference(), "utf-8")
    Path("README.md").write_text(with_tables(Path("README.md").read_text("utf-8")), "utf-8")
