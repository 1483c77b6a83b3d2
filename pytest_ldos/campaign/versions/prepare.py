"""Prepares the environment of a revision for the embedded stack."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.versions.checkouts import Checkout, Recipe, checked_out
from pytest_ldos.campaign.versions.kept import Announce
from pytest_ldos.campaign.versions.requirements import US, requirements_of
from pytest_ldos.campaign.versions.version import Revision, Version, version_of
from pytest_ldos.host.logs import last_lines
from pytest_ldos.scenario.base import BaseSpec


def prepare(revision: Revision, role: Role, spec: BaseSpec, *, store: Path, announce: Announce) -> Version:
    """Returns the revision with its environment, which is created unless it exists.

    Args:
        store: folder in which such environments are kept.
        announce: called with progress messages.

    Raises:
        PreparationFailed: contains the last lines of the log.
    """
    recipe = Recipe(
        {"setup": list(spec.setup), "python": spec.python, "version": sys.version},
        lambda checkout: _commands(checkout, spec),
        makes=spec.python,
    )
    name = f"{role} {revision.commit}"
    with checked_out(revision, recipe, name=name, store=store, announce=announce) as checkout:
        python, project = checkout.project / spec.python, checkout.project
    return version_of(role, revision.name, commit=revision.commit, python=python, project=project)


def _commands(checkout: Checkout, spec: BaseSpec) -> list[Sequence[str]]:
    if spec.setup:
        return [spec.setup]
    try:
        requirements = requirements_of(checkout.project)
    except ValueError as error:
        reason = f"its pyproject.toml cannot be used: {error}"
        raise checkout.failed(reason, details=last_lines(checkout.log)) from None
    if not requirements:
        raise checkout.failed(f"its pyproject.toml names neither a project nor {US}")
    python = str(checkout.project / spec.python)
    environment = str(Path(python).parents[1])
    return [[sys.executable, "-m", "venv", environment], [python, "-m", "pip", "install", *requirements]]
