"""Folders of the checkout that the wheel carries."""

from __future__ import annotations

from pathlib import Path

from pytest_ldos.base.errors import ConfigurationError


def find_carried(folder: str) -> Path:
    """A folder in the installed package, or in the checkout that is installed in place.

    Raises:
        ConfigurationError: it is in neither.
    """
    package = Path(__file__).parents[1]
    found = next((each for each in (package / folder, package.parent / folder) if each.is_dir()), None)
    if found is None:
        raise ConfigurationError(f"{folder} of pytest-ldos is missing", remedy="install pytest-ldos again")
    return found
