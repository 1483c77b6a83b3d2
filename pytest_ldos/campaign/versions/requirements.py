"""Determines what to install of a project so that its embedded stack can be started."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

US: Final = "pytest-ldos"
_OURSELVES: Final = ".[embedded]"
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


def requirements_of(project: Path) -> list[str]:
    """Arguments of ``pip install`` for a project: itself, and its requirements that bring pytest-ldos.

    Raises:
        ValueError: its pyproject.toml is not valid TOML, or a value in it has the wrong type.
    """
    try:
        document = tomllib.loads((project / "pyproject.toml").read_text("utf-8-sig"))
    except FileNotFoundError:
        return []
    metadata = _table(document, "project")
    if _normal(str(metadata.get("name", ""))) == US:
        return [_OURSELVES]
    own = ["."] if metadata else []
    return own if _asks_for_us(_list(metadata, "dependencies")) else [*own, *dict.fromkeys(_asked_elsewhere(document))]


def _asked_elsewhere(document: Mapping[str, Any]) -> Iterator[str]:
    """Requirements of pytest-ldos among the extras and the dependency groups."""
    for named in (_table(_table(document, "project"), "optional-dependencies"), _table(document, "dependency-groups")):
        for name in named:
            yield from (each for each in _list(named, name) if _asks_for_us([each]))


def _table(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise ValueError(f"{key} is no table")
    return value


def _list(table: Mapping[str, Any], key: str) -> list[Any]:
    value = table.get(key, [])
    if not isinstance(value, list):
        raise ValueError(f"{key} is no list")
    return value


def _asks_for_us(requirements: list[Any]) -> bool:
    names = (_NAME.match(each) for each in requirements if isinstance(each, str))
    return any(_normal(name.group()) == US for name in names if name)


def _normal(name: str) -> str:
    """A package name, normalised for comparison (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
