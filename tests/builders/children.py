"""Processes that a test left behind."""

from __future__ import annotations

import psutil

_FOR_LIFE = ("pytest_ldos.host.undoer", "multiprocessing.resource_tracker")
"""What undoes changes of the machine, and what removes shared memory: they end with the process that they are for."""


def children_left() -> list[psutil.Process]:
    """Children of this process, but for those that stay as long as it does."""
    children = {each: " ".join(each.cmdline()) for each in psutil.Process().children()}
    return [each for each, command in children.items() if not any(name in command for name in _FOR_LIFE)]
