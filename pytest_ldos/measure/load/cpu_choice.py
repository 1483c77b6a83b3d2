"""Selection of this machine's CPUs by a load's spec."""

from __future__ import annotations

from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.host.cpu import describe_cpus, our_cpus
from pytest_ldos.scenario.loads.spec import Cpus

_MOST: Final = 1 << 13
"""Largest number of CPUs that Linux supports."""


def choose_cpus(asked: Cpus, where: str) -> frozenset[int]:
    """Returns the selected CPUs.

    Args:
        where: name of the setting, for messages: ``cpu_limit cpus``.

    Raises:
        ConfigurationError: some of them do not exist or are forbidden to this process; the message lists the usable
            ones.
    """
    ours = our_cpus()
    if isinstance(asked, int):
        if asked > len(ours):
            _refuse(f"{where} asks for {asked} CPUs", ours)
        return frozenset(sorted(ours)[:asked])
    chosen = _parse(asked)
    if not chosen:
        _refuse(f"{where} is {asked!r}, which names no CPU", ours)
    if not chosen <= ours:
        _refuse(f"{where} is {asked!r}", ours)
    return chosen


def _refuse(message: str, ours: frozenset[int]) -> None:
    raise ConfigurationError(
        f"{message}; this process may use {len(ours)}: {describe_cpus(ours)}",
        remedy='ask for a number of them, or name some as "0,2-3"',
    )


def _parse(text: str) -> frozenset[int]:
    """Returns the CPUs of a valid list; numbers above `_MOST`, which no machine has, are reduced to it."""
    found: set[int] = set()
    for span in text.split(","):
        first, _, last = span.partition("-")
        found.update(range(min(int(first), _MOST), min(int(last or first), _MOST) + 1))
    return frozenset(found)
