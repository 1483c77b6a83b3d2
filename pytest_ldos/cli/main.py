"""The command ``ldos``, the help of its commands, and parameters in addition to those in their signatures."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import Enum
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, NoReturn, Union, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import ArgumentInfo, ParameterInfo

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import LdosError, NotWritten
from pytest_ldos.cli.say import allow_any_letter, complain, say
from pytest_ldos.instruments import MODULES

_WORDS: Final = {Path: "PATH", int: "N", float: "NUMBER", str: "TEXT"}
_NAMED: Final = {
    "clock_offset": "HOST=NANOSECONDS",
    "confidence": "SHARE",
    "deadline": "NAME=MS",
    "directory": "DIR",
    "effect": "SHARE",
    "host_class": "CLASS",
    "interface": "WHAT=NAME",
    "interval": "TIME",
    "keep": "TIME",
    "log": "DIR",
    "metric": "METRIC",
    "output": "FILE",
    "over": "ADDRESS=VALUE,…",
    "parquet": "DIR",
    "pause": "TIME",
    "pid": "PID",
    "plot": "FILE",
    "precision": "SHARE",
    "profile": "DIR",
    "record": "FILE",
    "repository": "URL",
    "rmw": "NAME",
    "scenario": "NAME",
    "since": "COMMIT|DATE",
    "site": "FOLDER",
    "stack": "NAME",
    "syscalls": "DIR",
    "target": "FILE",
    "time_limit": "TIME",
    "until": "CONDITION",
}
"""Placeholder of a value by the name of its parameter, or else by its type."""

_BOUNDS: Final = (
    (re.compile(r"\b([\d.]+)<=x<=([\d.]+)"), r"\1 to \2"),
    (re.compile(r"\bx>=([\d.]+)"), r"at least \1"),
)
"""Typer's wording for the range of a number, and ours."""


class Command(TyperCommand):
    """A command with our help; an option whose placeholder ends in ``…`` takes all words up to the next option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        greedy = {name for each in self.get_params(ctx) if (each.metavar or "").endswith("…") for name in each.opts}
        return super().parse_args(ctx, list(_each_with_its_option(args, greedy)))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        arguments = _parameters(self, ctx, "argument")
        return ["[OPTIONS]", *(_name(each) if each.required else f"[{_name(each)}]" for each in arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_parameters(self, ctx, formatter)


class Group(TyperGroup):
    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_parameters(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Lists the commands of all panels in the same columns."""
        width = max(map(len, self.commands), default=0)
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, each in self.commands.items():
            panel = getattr(each, "rich_help_panel", None)
            some = panels.setdefault(panel if isinstance(panel, str) else "Commands", [])
            some.append((f"{name:{width}}", each.get_short_help_str(1000)))  # so long that it is wrapped, not cut
        for panel, some in panels.items():
            with formatter.section(panel):
                formatter.write_dl(some)


def make_group(**options: Any) -> typer.Typer:
    return typer.Typer(cls=Group, rich_markup_mode=None, **options)


def _parameters(command: Any, ctx: Any, kind: str) -> list[Any]:
    return [each for each in command.get_params(ctx) if each.param_type_name == kind]


def _write_parameters(command: Any, ctx: Any, formatter: Any) -> None:
    def text_of(parameter: Any) -> str:
        text: str = parameter.get_help_record(ctx)[1]
        for bound, words in _BOUNDS:
            text = bound.sub(words, text)
        return text

    if arguments := [(_name(each), text_of(each)) for each in _parameters(command, ctx, "argument")]:
        with formatter.section("Arguments"):
            formatter.write_dl(arguments)
    options = [each for each in _parameters(command, ctx, "option") if not each.hidden]
    with formatter.section("Options"):
        formatter.write_dl([(each.get_help_record(ctx)[0], text_of(each)) for each in options])


def _each_with_its_option(words: Sequence[str], greedy: Collection[str]) -> Iterator[str]:
    """``--against A B`` as ``--against A --against B``."""
    option = ""
    for place, word in enumerate(words):
        if word == "--":
            yield from words[place:]
            return
        if word.startswith("-") and len(word) > 1:
            name = word.partition("=")[0]
            option = name if name in greedy else ""
        elif option and words[place - 1] != option:
            yield option
        yield word


def name_values(app: typer.Typer) -> None:
    """Sets the missing placeholders of parameters by their type."""
    for callback in callbacks_of(app):
        callback.__annotations__ = get_type_hints(callback, include_extras=True)
        for name, annotation in callback.__annotations__.items():
            for info in (each for each in get_args(annotation)[1:] if isinstance(each, ParameterInfo)):
                if info.metavar is None and not isinstance(info, ArgumentInfo):
                    info.metavar = _word(name, get_args(annotation)[0])


def callbacks_of(app: typer.Typer) -> Iterator[Callable[..., Any]]:
    own = [each.callback for each in app.registered_commands]
    own += [app.registered_callback.callback] if app.registered_callback else []
    yield from (each for each in own if each is not None)
    for below in app.registered_groups:
        if below.typer_instance is not None:
            yield from callbacks_of(below.typer_instance)


def _word(name: str, kind: Any) -> str | None:
    """The choices if there are some; nothing for a switch."""
    if get_origin(kind) in {Union, UnionType, list}:
        return next((word for each in get_args(kind) if (word := _word(name, each)) is not None), None)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(str(each.value) for each in kind)
    return _NAMED.get(name, _WORDS[kind]) if kind in _WORDS else None


def _name(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.nargs == 1 or name.endswith("…") else f"{name}…"


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(function, include_extras=True)
    return [each.replace(annotation=hints[each.name]) for each in inspect.signature(function).parameters.values()]


def show_parameters(command: Callable[..., None], parameters: Iterable[inspect.Parameter]) -> None:
    """Shows these parameters to typer in place of a command's ``**arguments``."""
    signature = inspect.Signature(list(parameters))
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()} | {"return": None}


_PANELS: Final = {
    "Begin": {"init": "setup:init"},
    "Compare and keep results": {
        "report": "results:report",
        "compare": "results:compare",
        "accept": "results:accept",
        "baseline": "results:baseline_app",
        "history": "history:history_app",
        "comment": "results:comment",
        "annotate": "results:annotate",
        "join": "results:join",
    },
    "Measure more than a test does": {
        "measure": "setup:measure",
        "calibrate": "starts:calibrate",
        "selftest": "starts:selftest",
        "sweep": "starts:sweep",
        "planning": "starts:planning",
        "find-breaking": "search:find_breaking",
        "bisect": "search:bisect",
    },
    "Look at traces": {
        "record": "record:record",
        "watch": "watch:watch",
        "analyze": "analyze:analyze",
        "export": "traces:export",
        "profile": "traces:profile_app",
    },
    "Measure the middleware": {name.replace("_", "-"): f"instruments:{name}" for name in MODULES},
    "This machine": {"doctor": "setup:doctor", "ros-packages": "setup:ros_packages"},
}
"""Module and function or group of each command, by panel of the help and name."""

COMMANDS: Final = {name: (place, panel) for panel, some in _PANELS.items() for name, place in some.items()}


def _print_version(asked: bool) -> None:
    if asked:
        say(f"pytest-ldos {version('pytest-ldos')}")
        raise typer.Exit


def _ldos(
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Performance of a manipulation stack: results of its tests, and measurements outside of tests.

    The tests run in pytest: pytest -m baseline
    """


def make_app(names: Iterable[str] = tuple(COMMANDS)) -> typer.Typer:
    """The app with these commands; modules of other commands are not loaded."""
    app = make_group(name="ldos", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
    app.callback()(_ldos)
    for name in names:
        place, panel = COMMANDS[name]
        module, _, attribute = place.partition(":")
        command = getattr(import_module(f"pytest_ldos.cli.{module}"), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, rich_help_panel=panel)
        else:
            app.command(name, cls=Command, rich_help_panel=panel)(command)
    name_values(app)
    return app


def run() -> NoReturn:
    """Entry point: known faults end with their message and an exit code.

    Loads the command named by the first word, none for the version, or all if there is no such command.
    """
    allow_any_letter()
    words = [each for each in sys.argv[1:] if not each.startswith("-")]
    names: Iterable[str] = words[:1] if words and words[0] in COMMANDS else COMMANDS
    try:
        make_app([] if sys.argv[1:2] == ["--version"] else names)()
    except LdosError as error:
        complain(error)
        raise SystemExit(exit_codes.INVALID if isinstance(error, NotWritten) else exit_codes.USAGE) from None
    raise SystemExit(0)
