"""Reasons why a stored baseline or calibration does not apply to a run, as values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.scenario.loads.spec import LoadSpec


@dataclass(frozen=True)
class OtherHostClasses:
    """Only other host classes have one."""

    here: BaselineKey
    others: tuple[str, ...]


@dataclass(frozen=True)
class OtherHost:
    """Two saved results are of different host classes or stacks."""

    here: BaselineKey
    there: BaselineKey


@dataclass(frozen=True)
class OtherScenario:
    """A file contains that of another scenario, stack or host class than its place says."""

    file: Path
    here: BaselineKey
    there: BaselineKey


@dataclass(frozen=True)
class LoadDifference:
    """A setting of a load, or a whole load, that differs.

    Attributes:
        name: ``KIND``, or ``KIND.SETTING``.
        here, there: the values; ``None`` on the side that does not have the load.
    """

    name: str
    here: object | None
    there: object | None


@dataclass(frozen=True)
class OtherLoads:
    """A file was measured under other loads."""

    file: Path
    differences: tuple[LoadDifference, ...]


def find_load_differences(head: Sequence[LoadSpec], base: Sequence[LoadSpec]) -> Iterator[LoadDifference]:
    """Settings of loads that differ; a load that only one side has is one difference."""
    ours, theirs = ({load.KIND: vars(load) for load in loads} for loads in (head, base))
    for kind in dict.fromkeys([*ours, *theirs]):
        if kind not in ours or kind not in theirs:
            yield LoadDifference(kind, ours.get(kind), theirs.get(kind))
            continue
        for name, here in ours[kind].items():
            if here != theirs[kind][name]:
                yield LoadDifference(f"{kind}.{name}", here, theirs[kind][name])
