"""Folders of the user by the XDG Base Directory Specification."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def state_folder(environment: Mapping[str, str]) -> Path:
    """For what lasts, but is no setting: ``$XDG_STATE_HOME``."""
    return _folder(environment, "XDG_STATE_HOME", ".local/state")


def cache_folder(environment: Mapping[str, str]) -> Path:
    """For what can be made again: ``$XDG_CACHE_HOME``."""
    return _folder(environment, "XDG_CACHE_HOME", ".cache")


def _folder(environment: Mapping[str, str], variable: str, default: str) -> Path:
    """A path that is not absolute does not count, as the specification says."""
    asked = Path(environment.get(variable, ""))
    return asked if asked.is_absolute() else Path.home() / default
