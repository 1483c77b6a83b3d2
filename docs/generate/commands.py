"""The page of commands."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer

from docs.generate.classes import field_value
from docs.generate.text import code, prose, shown, table, without_default
from pytest_ldos.cli.main import make_app


def commands_page() -> Iterator[str]:
    """Every command with its arguments."""
    yield from (
        "# Commands",
        "",
        "`ldos --version` prints the version, `ldos COMMAND --help` what this page has of a command.",
        "",
    )
    for name, callback in commands_of(make_app(), "ldos"):
        text = inspect.getdoc(callback) or ""
        yield from (f"## `{name}`", "", *prose(text))
        rows = list(parameters(callback))
        if rows:
            yield from table(("argument", "value", "default", "meaning"), rows)
            yield ""


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


def parameters(command: Callable[..., Any]) -> Iterator[tuple[str, ...]]:
    hints = get_type_hints(command, include_extras=True)
    for parameter in inspect.signature(command).parameters.values():
        annotation = hints[parameter.name]
        if get_origin(annotation) is not Annotated:
            continue  # the context that typer hands in
        kind, *extras = get_args(annotation)
        info = next(each for each in extras if isinstance(each, typer.models.ParameterInfo))
        text, default = without_default(str(info.help or ""))
        if parameter.default is inspect.Parameter.empty:
            default = "must be given"
        elif not default:
            default = shown(parameter.default)
        yield code(_called(parameter, kind, info)), _kind_of(kind), default, text


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
    return "" if kind is bool else field_value(kind)
