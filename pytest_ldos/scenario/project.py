"""The project of tests and commands: its settings are the nearest ones upwards, independent of pytest's root.

Every pytest run with the plugin installed loads this module, and looks for settings above its tests.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pytest_ldos.scenario.options import OWN_FILE

PROJECT_FILE: Final = "pyproject.toml"

SETTINGS_FILES: Final = (OWN_FILE, PROJECT_FILE)
"""Files that may hold a project's settings; only one of them may."""

_WORD: Final = b"ldos"
_OUR_NAME: Final = b"pytest-ldos"
"""The distribution's name, which projects that only depend on it also contain."""


def find_settings_file(place: Path, look: Callable[[Path], Path | None] | None = None) -> Path | None:
    """The settings file of the project that a file or folder belongs to: the nearest one upwards.

    Looks above the path as given; if that finds none, above the path with links resolved.

    Args:
        look: returns the settings file in a folder: `settings_file_in`, or a cache of it.
    """
    named = Path(os.path.abspath(place))  # noqa: PTH100 - keeps links
    for start in dict.fromkeys([named, Path(os.path.realpath(place))]):
        found = next(filter(None, map(look or settings_file_in, (start, *start.parents))), None)
        if found is not None:
            return found
    return None


def settings_file_in(folder: Path) -> Path | None:
    """The settings file in a folder: ``ldos.toml``, or a ``pyproject.toml`` with ``[tool.ldos]``."""
    own, shared = folder / OWN_FILE, folder / PROJECT_FILE
    if _is_file(own):
        return own
    return shared if has_table(shared) else None


def has_table(file: Path) -> bool:
    """True if a ``pyproject.toml`` has ``[tool.ldos]``, or cannot be read: reading its settings reports the reason.

    Parses it only if it contains our name.
    """
    if not _is_file(file):
        return False
    try:
        content = file.read_bytes()
        if _WORD not in content.replace(_OUR_NAME, b""):
            return False
        import tomllib  # noqa: PLC0415 - for files that may have settings only

        tools = tomllib.loads(content.decode("utf-8")).get("tool")
    except (OSError, ValueError):
        return True
    return isinstance(tools, dict) and "ldos" in tools


def _is_file(file: Path) -> bool:
    """True for a file; False in a folder that may not be searched, where `Path.is_file` raises."""
    return os.path.isfile(file)  # noqa: PTH113
