"""Processes that a test left behind."""

from __future__ import annotations

import psutil

_FOR_LIFE = ("pytest_ldos.host.temporary", "multiprocessing.resource_tracker")
"""Helpers that undo changes of the machine and remove shared memory; they end with their owner."""


def children_left() -> list[psutil.Process]:
    """Children of this process, but for those that stay as long as it does."""
    children = {each: " ".join(each.cmdline()) for each in psutil.Process().children()}
    return [each for each, command in children.items() if not any(name in command for name in _FOR_LIFE)]
