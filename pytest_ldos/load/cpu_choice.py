"""Which CPUs a load's spec means on this machine."""

from __future__ import annotations

from typing import Final

from pytest_ldos.errors import ConfigurationError
from pytest_ldos.host.affinity import describe_cpus, our_cpus
from pytest_ldos.scenario.loads import Cpus

_MOST: Final = 1 << 13
"""As many as Linux can have."""


def choose_cpus(asked: Cpus, where: str) -> frozenset[int]:
    """The CPUs meant.

    Args:
        where: it was asked, for messages: ``cpu_limit cpus``.

    Raises:
        ConfigurationError: some of them do not exist, or are not ours; names those there are.
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
    """CPUs of a list whose form is known to be right; one that no machine has stands for all such."""
    found: set[int] = set()
    for span in text.split(","):
        first, _, last = span.partition("-")
        found.update(range(min(int(first), _MOST), min(int(last or first), _MOST) + 1))
    return frozenset(found)
