"""The ``[tool.ldos.base]`` table: setup of the environment of another revision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.nearest import refuse_unknown
from pytest_ldos.base.requirements import require

_WHERE = "[tool.ldos.base]"


@dataclass(frozen=True, kw_only=True)
class BaseSpec:
    """Setup of the environment of a revision, in a checkout of it.

    Attributes:
        setup: command that makes it; empty for a virtual environment with what the revision's
            pyproject.toml asks for.
        python: its interpreter, below the project's folder.
    """

    setup: tuple[str, ...] = ()
    python: str = ".venv/bin/python"

    def __post_init__(self) -> None:
        require(bool(self.python), f"{_WHERE} python is empty", remedy="name the interpreter that setup makes")


def parse_base(values: Mapping[str, Any]) -> BaseSpec:
    """Parses a ``[tool.ldos.base]`` table.

    Raises:
        ConfigurationError: an unknown key (the nearest known one is named), or a wrong type.
    """
    refuse_unknown(values, {"setup", "python"}, f"key {_WHERE}")
    setup, python = values.get("setup", []), values.get("python", BaseSpec.python)
    if not isinstance(setup, list) or not all(isinstance(word, str) for word in setup):
        remedy = 'write the command as a list of its words, as in ["make", "setup"]'
        raise ConfigurationError(f"{_WHERE} setup is {setup!r}", remedy=remedy)
    if not isinstance(python, str):
        raise ConfigurationError(f"{_WHERE} python is {python!r}", remedy="it must be a text")
    return BaseSpec(setup=tuple(setup), python=python)
