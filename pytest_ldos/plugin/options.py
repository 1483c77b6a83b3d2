"""Options of the command line, and values of ours that pytest would mistake for paths of tests.

Before it knows a plugin's options, pytest looks for its root and its settings above every argument that exists on disk.
A value after a space is such an argument; one joined to its option by ``=`` is not.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_ldos.scenario.options import OPTIONS, Option

if TYPE_CHECKING:
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
            from pytest_ldos.base.errors import suggest
            from pytest_ldos.plugin.messages import usage_error

            raise usage_error(f"unknown option {flag}\n  → {suggest(flag, known)}")


def read_settings(config: pytest.Config, environment: Mapping[str, str], found: Path | None) -> Sources:
    """Reads all settings; an error in them is a usage error.

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
    from pytest_ldos.scenario.described import parse_value

    given = {option: config.getoption(f"ldos_{option.name}") for option in OPTIONS.values()}
    return {
        option.name: parse_value(option, value, option.flag) for option, value in given.items() if value is not None
    }


_MARKS_OF_A_ROOT: Final = (
    "pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg", "setup.py",
)  # fmt: skip
"""Files by which pytest recognises the root of a project."""

_NO_MORE_OPTIONS: Final = "--"


def refuse_values_taken_for_the_root(config: pytest.Config, environment: Mapping[str, str]) -> None:
    """Refuses a value after a space that led pytest to another root; with the same root, it is harmless.

    Raises:
        pytest.UsageError: the message has the correct form.
    """
    if config.known_args_namespace.inifilename:
        return
    found = config.rootpath if config.inipath is None else config.inipath.parent
    for flag, value in _existing_values(config, environment):
        if found != _root_without_values(config):
            from pytest_ldos.plugin.messages import usage_error

            raise usage_error(
                f"{flag} {value}: pytest takes {value} for a place of tests, and its settings and root from there"
                f"\n  → write {flag}={value}"
            )


def _existing_values(config: pytest.Config, environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Our options with the following argument, if that is an existing path."""
    flags = {option.flag for option in OPTIONS.values() if not option.is_flag}
    given = (shlex.split(environment.get("PYTEST_ADDOPTS", "")), config.invocation_params.args)
    for arguments in given:
        options = takewhile(_NO_MORE_OPTIONS.__ne__, map(str, arguments))
        yield from ((flag, value) for flag, value in pairwise(options) if flag in flags and _exists(config, value))


def _root_without_values(config: pytest.Config) -> Path:
    """The root that pytest finds by the other arguments, or by the working directory without any."""
    here = config.invocation_params.dir
    places = [here / place for each in config.known_args_namespace.file_or_dir if _exists(config, place := _file(each))]
    start = _common_folder(places) if places else here
    marked = (each for each in (start, *start.parents) if any((each / name).is_file() for name in _MARKS_OF_A_ROOT))
    return next(marked, _common_folder([here, start]))


def _file(argument: str) -> str:
    """The file of ``tests/test_arm.py::test_reach``."""
    return argument.partition("::")[0]


def _exists(config: pytest.Config, place: str) -> bool:
    try:
        return (config.invocation_params.dir / place).exists()
    except (OSError, ValueError):  # too long for a name, or with a null byte
        return False


def _common_folder(places: Iterable[Path]) -> Path:
    folders = [os.path.abspath(each if each.is_dir() else each.parent) for each in places]  # noqa: PTH100 - keeps links, as pytest does
    return Path(os.path.commonpath(folders))
