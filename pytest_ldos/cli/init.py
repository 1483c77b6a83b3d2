"""``ldos init``: a first project in an empty folder."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Final

import typer

from pytest_ldos.base.carried import find_carried
from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.writable import write_atomically
from pytest_ldos.cli.say import say

_TEMPLATE: Final = "examples/first_project"
_FILES: Final = {
    "pyproject.toml": "settings, and a scenario as data: busy_cell",
    "test_arm.py": "a test of each scenario",
    ".github/workflows/request.yml": "the gate of pull requests; put your copy of pytest-ldos in for OWNER and zeros",
    ".gitignore": "results stay out of commits",
}
_NEXT: Final = {
    "ldos doctor": "lists what this machine lacks, each with its remedy",
    "pytest -m baseline": "ten reaches of the arm: the first run is the baseline",
    "pytest -m busy_cell": "the same under load",
}


def init(
    directory: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="Folder to make it in; by default this one.")
    ] = Path(),
) -> None:
    """Make a first project: settings, two scenarios, a workflow."""
    existing = [name for name in _FILES if (directory / name).exists()]
    if existing:
        raise ConfigurationError(
            f"{directory.resolve().name} has {', '.join(existing)} already; nothing was written",
            remedy="make it in an empty folder (ldos init DIR), and take over what you want",
        )
    template = find_carried(_TEMPLATE)
    for name, meaning in _FILES.items():
        write_atomically(directory / name, (template / name).read_bytes())
        say(f"wrote {directory / name}: {meaning}")
    say("next:")
    for command, meaning in _commands(directory).items():
        say(f"  {command:<20}  # {meaning}" if meaning else f"  {command}")


def _commands(directory: Path) -> dict[str, str]:
    """Commands to type next, each with its purpose."""
    is_here = directory.resolve() == Path.cwd()
    return _NEXT if is_here else {f"cd {shlex.quote(str(directory))}": "", **_NEXT}
