"""``ldos init``: a first project in a folder, whose own files stay as they are."""

from __future__ import annotations

import os.path
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pytest_ldos.base.carried import find_carried
from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.writable import write_atomically
from pytest_ldos.cli.say import say
from pytest_ldos.scenario.options import OWN_FILE
from pytest_ldos.scenario.project import PROJECT_FILE

_TEMPLATE: Final = "examples/first_project"
_FILES: Final = {
    PROJECT_FILE: "settings, and a scenario as data: busy_cell",
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
    """Make a first project: settings, two scenarios, a workflow.

    A file that is there already stays as it is, and what to add to it is printed.
    """
    template = find_carried(_TEMPLATE)
    places = {name: _place_of(name, directory) for name in _FILES}
    additions = {
        name: _additions(place, (template / name).read_text("utf-8"))
        for name, place in places.items()
        if os.path.lexists(place)
    }
    for name, meaning in _FILES.items():
        if name not in additions:
            write_atomically(places[name], (template / name).read_bytes())
            say(f"wrote {places[name]}: {meaning}")
        elif additions[name]:
            say(f"kept {places[name]}; add to it:")
            for line in ("", *additions[name].splitlines(), ""):
                say(line)
        else:
            say(f"kept {places[name]}, which is there already")
    say("next, with these additions:" if any(additions.values()) else "next:")
    for command, meaning in _commands(directory).items():
        say(f"  {command:<20}  # {meaning}" if meaning else f"  {command}")


def _place_of(name: str, directory: Path) -> Path:
    """File of the project; settings stay in a file of their own if they have one."""
    own = directory / OWN_FILE
    return own if name == PROJECT_FILE and own.exists() else directory / name


def _additions(place: Path, wanted: str) -> str:
    """Text that can be appended to a file that is there, so that it has what the template has.

    Raises:
        ConfigurationError: it cannot be read.
    """
    if place.name not in (PROJECT_FILE, OWN_FILE, ".gitignore"):
        return ""
    try:
        text = place.read_text("utf-8-sig")
        document = tomllib.loads(text) if place.suffix == ".toml" else {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{place} cannot be read: {error}; nothing was written", remedy="mend it") from None
    if place.suffix == ".toml":
        return "\n\n".join(_missing_tables(document, wanted, is_own=place.name == OWN_FILE))
    ignored = {line.strip().strip("/") for line in text.splitlines()}
    return "\n".join(line for line in wanted.splitlines() if line.strip("/") not in ignored)


def _missing_tables(document: dict[str, Any], wanted: str, *, is_own: bool) -> Iterator[str]:
    """Tables of the template that settings lack; ``[tool.ldos]`` itself is the whole of a file of their own."""
    tool = {"pytest": {}, "ldos": document} if is_own else document.get("tool", {})
    for block in wanted.strip().split("\n\n"):
        _, *keys = block[1 : block.index("]")].split(".")  # of [tool.ldos.scenarios.busy_cell]
        found: Any = tool
        for key in keys[:1] if keys[0] == "pytest" else keys:  # pytest has two names of its table, and takes one
            found = found.get(key) if isinstance(found, dict) else None
        if found is None:
            yield block.replace("[tool.ldos.", "[") if is_own else block


def _commands(directory: Path) -> dict[str, str]:
    """Commands to type next, each with its purpose."""
    is_here = directory.resolve() == Path.cwd()
    return _NEXT if is_here else {f"cd {shlex.quote(str(directory))}": "", **_NEXT}
