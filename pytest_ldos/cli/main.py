"""The command ``ldos``."""

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
from pytest_ldos.cli.studies import with_watch_options

_INSTRUMENTS: Final = "Measure the middleware"

_PANELS: Final = {
    "Begin": {"init": "setup:init"},
    "Compare and keep results": {
        "report": "results:report",
        "compare": "results:compare",
        "baseline": "baseline:baseline_app",
        "history": "history:history_app",
        "comment": "results:comment",
        "annotate": "results:annotate",
        "join": "results:join",
    },
    "Measure more than a test does": {
        "measure": "measure:measure",
        "calibrate": "calibrate:calibrate",
        "selftest": "calibrate:selftest",
        "sweep": "sweep:sweep",
        "find-breaking": "find_breaking:find_breaking",
        "bisect": "bisect:bisect",
    },
    "Look at traces": {"analyze": "analyze:analyze", "export": "export:export", "profile": "export:profile_app"},
    _INSTRUMENTS: {name.replace("_", "-"): f"instruments:{name}" for name in MODULES},
    "This machine": {"doctor": "setup:doctor", "ros-packages": "setup:ros_packages"},
}
"""Module and function or group of each command, by panel of the help and name."""

_COMMANDS: Final = {name: (place, panel) for panel, some in _PANELS.items() for name, place in some.items()}


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


def make_app(names: Iterable[str] = tuple(_COMMANDS)) -> typer.Typer:
    """The app with these commands; modules of other commands are not loaded."""
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
    """The command named by the first word, none for the version, or all if there is no such command."""
    if arguments[:1] == ["--version"]:
        return []
    word = next((each for each in arguments if not each.startswith("-")), "")
    return [word] if word in _COMMANDS else _COMMANDS


def run() -> NoReturn:
    """Entry point: known faults end with their message and an exit code."""
    allow_any_letter()
    try:
        make_app(_asked(sys.argv[1:]))()
    except LdosError as error:
        complain(error)
        raise SystemExit(exit_codes.INVALID if isinstance(error, NotWritten) else exit_codes.USAGE) from None
    raise SystemExit(0)
