"""Options of the command line, from the table of all settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_ldos.scenario.options import OPTIONS, Option

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ldos.scenario.settings import Sources

_PREFIX: Final = "--ldos"


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("ldos", "performance of a manipulation stack, from traces (pytest-ldos)")
    for option in OPTIONS.values():
        _add(group, option)


def _add(group: pytest.OptionGroup, option: Option) -> None:
    destination = f"ldos_{option.name}"
    if option.is_flag:
        group.addoption(option.flag, dest=destination, action="store_true", default=None, help=option.help)
    elif option.is_repeatable:
        group.addoption(option.flag, dest=destination, metavar=option.metavar, action="append", help=option.help)
    else:
        group.addoption(option.flag, dest=destination, metavar=option.metavar, default=None, help=option.help)


def refuse_unknown_flags(arguments: list[str]) -> None:
    """Refuses an unknown ``--ldos-…``; names the nearest one that exists."""
    known = {option.flag for option in OPTIONS.values()}
    for argument in arguments:
        flag = argument.partition("=")[0]
        if flag.startswith(_PREFIX) and flag not in known:
            from pytest_ldos.base.nearest import suggest
            from pytest_ldos.plugin.messages import usage_error

            raise usage_error(f"unknown option {flag}\n  → {suggest(flag, known)}")


def read_settings(config: pytest.Config, environment: Mapping[str, str], found: Path | None) -> Sources:
    """Reads all settings; a fault in them is a usage error.

    Args:
        found: the settings file of the project, if it has one.
    """
    from pytest_ldos.base.errors import ConfigurationError
    from pytest_ldos.plugin.messages import usage_error
    from pytest_ldos.scenario.settings import read_environment, read_sources

    try:
        return read_sources(
            found,
            root=config.rootpath,
            here=config.invocation_params.dir,
            command_line=_read_command_line(config),
            environment=read_environment(environment),
        )
    except ConfigurationError as error:
        raise usage_error(str(error)) from None


def _read_command_line(config: pytest.Config) -> dict[str, Any]:
    from pytest_ldos.scenario.option_values import parse_value

    given = {option: config.getoption(f"ldos_{option.name}") for option in OPTIONS.values()}
    return {
        option.name: parse_value(option, value, option.flag) for option, value in given.items() if value is not None
    }
