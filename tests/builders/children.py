"""Processes that a test left behind."""

from __future__ import annotations

import psutil

_FOR_LIFE = "pytest_ldos.host.undoer"
"""The process that undoes changes of the machine: it ends with the process that it is for."""


def children_left() -> list[psutil.Process]:
    """Children of this process, but for the one that stays as long as it does."""
    return [each for each in psutil.Process().children() if _FOR_LIFE not in each.cmdline()]
