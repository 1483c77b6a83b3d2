"""The command ``ldos``: what can be done with results without running anything."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Final, NoReturn

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import LdosError, NotWritten
from pytest_ldos.campaign.instruments import MODULES
from pytest_ldos.cli.analyze import analyze
from pytest_ldos.cli.baseline import baseline_app
from pytest_ldos.cli.calibrate import calibrate
from pytest_ldos.cli.comment import annotate, comment
from pytest_ldos.cli.compare import compare
from pytest_ldos.cli.doctor import doctor
from pytest_ldos.cli.export import export
from pytest_ldos.cli.find_breaking import find_breaking
from pytest_ldos.cli.help import Command, Group, name_values
from pytest_ldos.cli.history import history_app
from pytest_ldos.cli.profile import profile_app
from pytest_ldos.cli.report import report
from pytest_ldos.cli.say import allow_any_letter, complain, say
from pytest_ldos.cli.selftest import selftest
from pytest_ldos.cli.sweep import sweep
from pytest_ldos.cli.watch_options import add_watch_options

_COMPARE: Final = "Compare and keep results"
_MEASURE: Final = "Measure more than a test does"
_LOOK: Final = "Look at traces"
_INSTRUMENTS: Final = "Measure the middleware"
_MACHINE: Final = "This machine"

app = typer.Typer(
    name="ldos",
    cls=Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _add(command: Callable[..., None], panel: str) -> None:
    app.command(cls=Command, rich_help_panel=panel)(command)


_add(report, _COMPARE)
_add(compare, _COMPARE)
app.add_typer(baseline_app, name="baseline", rich_help_panel=_COMPARE)
app.add_typer(history_app, name="history", rich_help_panel=_COMPARE)
_add(comment, _COMPARE)
_add(annotate, _COMPARE)
_add(calibrate, _MEASURE)
_add(selftest, _MEASURE)
_add(sweep, _MEASURE)
_add(find_breaking, _MEASURE)
_add(analyze, _LOOK)
_add(export, _LOOK)
app.add_typer(profile_app, name="profile", rich_help_panel=_LOOK)
for _name in MODULES:
    _add(getattr(import_module(f"pytest_ldos.cli.{_name}"), _name), _INSTRUMENTS)
_add(doctor, _MACHINE)
add_watch_options(app, MODULES)
name_values(app)


def _print_version(asked: bool) -> None:
    if asked:
        say(f"pytest-ldos {version('pytest-ldos')}")
        raise typer.Exit


@app.callback()
def ldos(
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Performance of a manipulation stack: results of the tests that measure it, and what no test measures.

    The tests run in pytest: pytest -m baseline
    """


def run() -> NoReturn:
    """Entry point: faults that have a name end with their message and an exit code."""
    allow_any_letter()
    try:
        app()
    except LdosError as error:
        complain(error)
        raise SystemExit(exit_codes.INVALID if isinstance(error, NotWritten) else exit_codes.USAGE) from None
    raise SystemExit(0)
