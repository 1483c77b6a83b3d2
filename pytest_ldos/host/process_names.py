"""Readable names of processes: the program, or for an interpreter the script or module."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Final

import psutil

_PYTHON: Final = re.compile(r"python[\d.]*t?")


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
    arguments = iter(command[1:])
    for argument in arguments:
        if argument == "-m":
            return next(arguments, program).rpartition(".")[2]
        if not argument.startswith("-"):
            return PurePosixPath(argument).name
        if argument == "-c":
            break
    return program
