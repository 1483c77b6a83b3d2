"""Readable names of processes: the program, or for an interpreter the script or module."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final

import psutil

_PYTHON: Final = re.compile(r"(?:python|pypy)[\d.]*[dt]*")
_WITH_VALUE: Final = re.compile(r"-[^-cmWX]*([cmWX])(.*)", re.DOTALL)
"""Python's options, one letter or several together, of which the last takes the rest or the next argument."""


def process_names(pids: Iterable[int]) -> dict[int, str]:
    """Names by pid; processes that are gone are left out."""
    named = {}
    for pid in pids:
        try:
            named[pid] = name_of_command(psutil.Process(pid).cmdline()) or psutil.Process(pid).name()
        except psutil.Error:
            continue
    return named


def name_of_command(command: Sequence[str]) -> str:
    """``simulator`` of ``python -m robot.simulator``; empty if the command has no name."""
    if not command:
        return ""
    program = PurePosixPath(command[0]).name
    if not _PYTHON.fullmatch(program):
        return program
    return _of_python(iter(command[1:])) or program


def _of_python(arguments: Iterator[str]) -> str:
    """Script or module of an interpreter's arguments; empty if it runs neither."""
    for argument in arguments:
        if found := _WITH_VALUE.fullmatch(argument):
            option, value = found[1], found[2] or next(arguments, "")
            if option in "cm":
                return value.rpartition(".")[2] if option == "m" else ""
        elif argument == "--check-hash-based-pycs":
            next(arguments, "")
        elif argument == "--":
            return PurePosixPath(next(arguments, "")).name
        elif not argument.startswith("-"):
            return PurePosixPath(argument).name
        elif argument == "-":
            return ""
    return ""
