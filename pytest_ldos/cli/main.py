"""The command ``ldos``: what can be done with results without running anything."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Final, NoReturn

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import LdosError, NotWritten
from pytest_ldos.campaign.instruments import MODULES
from pytest_ldos.cli.help import Command, Group, name_values
from pytest_ldos.cli.say import allow_any_letter, complain, say
from pytest_ldos.cli.watch_options import with_watch_options

_INSTRUMENTS: Final = "Measure the middleware"

_COMMANDS: Final = {
    "report": ("report:report", "Compare and keep results"),
    "compare": ("compare:compare", "Compare and keep results"),
    "baseline": ("baseline:baseline_app", "Compare and keep results"),
    "history": ("history:history_app", "Compare and keep results"),
    "comment": ("comment:comment", "Compare and keep results"),
    "annotate": ("comment:annotate", "Compare and keep results"),
    "calibrate": ("calibrate:calibrate", "Measure more than a test does"),
    "selftest": ("selftest:selftest", "Measure more than a test does"),
    "sweep": ("sweep:sweep", "Measure more than a test does"),
    "find-breaking": ("find_breaking:find_breaking", "Measure more than a test does"),
    "analyze": ("analyze:analyze", "Look at traces"),
    "export": ("export:export", "Look at traces"),
    "profile": ("profile:profile_app", "Look at traces"),
    **{name.replace("_", "-"): (f"{name}:{name}", _INSTRUMENTS) for name in MODULES},
    "doctor": ("doctor:doctor", "This machine"),
}
"""Module with its function or group, and panel of the help, by name of the command."""


def _print_version(asked: bool) -> None:
    if asked:
        say(f"pytest-ldos {version('pytest-ldos')}")
        raise typer.Exit


def _ldos(
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Performance of a manipulation stack: results of the tests that measure it, and what no test measures.

    The tests run in pytest: pytest -m baseline
    """


def make_app(names: Iterable[str] = tuple(_COMMANDS)) -> typer.Typer:
    """The app with these commands; no module of another one is loaded."""
    app = typer.Typer(
        name="ldos",
        cls=Group,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_ldos)
    for name in names:
        _add(app, name)
    name_values(app)
    return app


def _add(app: typer.Typer, name: str) -> None:
    place, panel = _COMMANDS[name]
    module, _, attribute = place.partition(":")
    command = getattr(import_module(f"pytest_ldos.cli.{module}"), attribute)
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name, rich_help_panel=panel)
    else:
        if panel == _INSTRUMENTS:
            command = with_watch_options(command)
        app.command(name, cls=Command, rich_help_panel=panel)(command)


def _asked(arguments: list[str]) -> Iterable[str]:
    """The command that the first word names, and none for the version; all of them, if none is of that name."""
    if arguments[:1] == ["--version"]:
        return []
    word = next((each for each in arguments if not each.startswith("-")), "")
    return [word] if word in _COMMANDS else _COMMANDS


def run() -> NoReturn:
    """Entry point: faults that have a name end with their message and an exit code."""
    allow_any_letter()
    try:
        make_app(_asked(sys.argv[1:]))()
    except LdosError as error:
        complain(error)
        raise SystemExit(exit_codes.INVALID if isinstance(error, NotWritten) else exit_codes.USAGE) from None
    raise SystemExit(0)
