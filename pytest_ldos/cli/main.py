"""The command ``ldos``: what can be done with results without running anything."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, NoReturn

import typer

from pytest_ldos import exit_codes
from pytest_ldos.campaign.instruments import MODULES
from pytest_ldos.cli.analyze import analyze
from pytest_ldos.cli.baseline import baseline_app
from pytest_ldos.cli.calibrate import calibrate
from pytest_ldos.cli.comment import annotate, comment
from pytest_ldos.cli.compare import compare
from pytest_ldos.cli.cpu_cost import cpu_cost
from pytest_ldos.cli.doctor import doctor
from pytest_ldos.cli.export import export
from pytest_ldos.cli.find_breaking import find_breaking
from pytest_ldos.cli.history import history_app
from pytest_ldos.cli.latency import latency
from pytest_ldos.cli.profile import profile_app
from pytest_ldos.cli.report import report
from pytest_ldos.cli.say import allow_any_letter, complain, say
from pytest_ldos.cli.selftest import selftest
from pytest_ldos.cli.sweep import sweep
from pytest_ldos.cli.topology import topology
from pytest_ldos.cli.tracing_cost import tracing_cost
from pytest_ldos.cli.watch_options import add_watch_options
from pytest_ldos.errors import LdosError, NotWritten

app = typer.Typer(
    name="ldos",
    help="Results of pytest-ldos: compare, report, and keep baselines.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(baseline_app, name="baseline", help="The baselines of this project and this machine.")
app.add_typer(history_app, name="history", help="Metrics over commits: steps, what they add up to, change points.")
app.add_typer(profile_app, name="profile", help="Where processes spent their time, and how that changed.")
app.command()(analyze)
app.command()(compare)
app.command()(report)
app.command()(comment)
app.command()(annotate)
app.command()(export)
app.command()(doctor)
app.command()(calibrate)
app.command()(selftest)
app.command("find-breaking")(find_breaking)
app.command()(sweep)
app.command()(latency)
app.command()(topology)
app.command("cpu-cost")(cpu_cost)
app.command("tracing-cost")(tracing_cost)
add_watch_options(app, MODULES)


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
    """Results of pytest-ldos: compare, report, and keep baselines."""


def run() -> NoReturn:
    """Entry point: faults that have a name end with their message and an exit code."""
    allow_any_letter()
    try:
        app()
    except LdosError as error:
        complain(error)
        raise SystemExit(exit_codes.INVALID if isinstance(error, NotWritten) else exit_codes.USAGE) from None
    raise SystemExit(0)
