"""``ldos ros-packages``: the ROS packages of pytest-ldos, built for a user's own stack."""

from __future__ import annotations

from typing import Annotated

import typer

from pytest_ldos.campaign.versions.our_packages import build_packages, needed_by
from pytest_ldos.campaign.versions.workspace import Workspace
from pytest_ldos.cli.paths import sources_here
from pytest_ldos.cli.say import say


def ros_packages(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME…]", help="Packages; by default those that the stack here needs and its workspace lacks."
        ),
    ] = None,
) -> None:
    """Build the ROS packages that a measured stack needs.

    Prints their setup script; in a shell with ROS 2 sourced: . "$(ldos ros-packages)". What is in a sourced prefix
    is not built; if all is there, nothing is printed. Builds are kept in the user's cache.
    """
    script = build_packages(names or _needed_here(), announce=lambda text: say(text, err=True))
    if script is not None:
        say(str(script))


def _needed_here() -> list[str]:
    """Packages that the stack here needs, without those of the project's own workspace, which are built with it."""
    sources = sources_here()
    own = Workspace(sources.root, sources.toml.base.workspaces(sources.root)).packages()
    return [each for each in needed_by(sources.stack_spec()) if each not in own]
