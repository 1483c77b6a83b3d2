"""``ldos measure``: measures a commit as a CI job does, in the environment that this is installed in."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.cli.measure_commit import main
from pytest_ldos.host.checkout import GitWords, ask_git, why_no_commit


def measure(
    part: Annotated[str, typer.Argument(metavar="[pack]", help="Collect results for other machines.")] = "",
    *,
    base: Annotated[
        str, typer.Option(envvar="GATE_BASE", help="Revision to compare with; by default the stored baseline.")
    ] = "",
    stack: Annotated[
        str, typer.Option(envvar="GATE_STACK", help="ros2, embedded, or both; by default that of the settings.")
    ] = "",
    commit: Annotated[
        str, typer.Option(envvar="GATE_COMMIT", help="Commit, 40 digits; by default the checked-out one.")
    ] = "",
) -> None:
    """Measure a commit as a CI job does.

    Tests, scenarios and settings are always those of the checkout. Writes the report to results/. On ros2, builds the
    workspaces of both versions and the packages of pytest-ldos that they need; ROS 2 is sourced if it is in /opt/ros.
    Further settings are variables: GATE_SCENARIOS, GATE_TRIALS, GATE_MAX_TRIALS, GATE_MINUTES, GATE_RECORD, GATE_FROM.

    Exit code: pytest's: 10 regressed, 11 invalid or infra, 12 no verdict; for two stacks, the worse one's.
    """
    given = {
        "GATE_BASE": base,
        "GATE_COMMIT": commit or _commit_here(),
        "GATE_STACK": stack,
        "GATE_BIN": str(Path(sys.executable).parent),
    }
    os.environ.update(given)
    raise typer.Exit(main([*filter(None, [part])]))


def _commit_here() -> str:
    found = ask_git(Path(), "rev-parse", "--verify", "--quiet", "HEAD")
    if not found:
        words = why_no_commit(Path()) or GitWords("git names no commit")
        raise ConfigurationError(
            f"no commit is checked out here: {words.reason}",
            remedy=words.remedy or "call it in the root of a git checkout",
        )
    return found
