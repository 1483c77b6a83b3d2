"""The common part of all loads as data, and of their checks."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final, NamedTuple

from pytest_ldos.base.paths import PathSpec
from pytest_ldos.base.requirements import require

Cpus = int | str
"""Selection of CPUs: a number N for the first N that this process may use, or a list like ``0,2-3``."""

_CPU_LIST: Final = re.compile(r"\d{1,9}(-\d{1,9})?(,\d{1,9}(-\d{1,9})?)*", re.ASCII)


class SchedulerGroup(StrEnum):
    """Processes that a load's processes compete with.

    Where the kernel groups processes by session (``sched_autogroup``), each session gets an equal share
    of the CPUs, however many processes it has.
    """

    STACK = "stack"
    """The stack's own session: each process of the load competes with each process of the stack."""

    OWN = "own"
    """A session of its own: the whole load has the same weight as the whole stack."""


class Proven(NamedTuple):
    """Keys of a load's proof for one field of the load: the amount reached, and the amount requested."""

    reached: str
    asked: str


@dataclass(frozen=True, kw_only=True)
class LoadSpec:
    """A load as data, checked when it is created; the wing `measure` applies it.

    Attributes:
        KIND: its name in settings, records and fixtures.
        PROVEN: by field, keys of its proof; fields that may be reached in part.
        LESS_IS_HARSHER: fields of which a smaller value disturbs more.
    """

    KIND: ClassVar[str]
    PROVEN: ClassVar[Mapping[str, Proven]] = {}
    LESS_IS_HARSHER: ClassVar[frozenset[str]] = frozenset()

    def check(self, paths: Sequence[PathSpec]) -> None:
        """Checks the load against the known causal paths.

        Raises:
            ConfigurationError: it contradicts them.
        """


def one_a_cpu() -> int:
    """The number of CPUs."""
    return os.cpu_count() or 1


def require_workers(count: int) -> None:
    require(1 <= count <= 1024, f"a load of {count} workers; between 1 and 1024 are possible")


def require_size(size_mb: int) -> None:
    require(1 <= size_mb <= 1_000_000, f"a load of {size_mb} MB a worker; between 1 and 1 000 000 are possible")


def require_cpus(cpus: Cpus, name: str, *, least: int) -> None:
    if isinstance(cpus, str):
        remedy = f'{name} is a number of CPUs, or names them as "0,2-3"'
        require(_CPU_LIST.fullmatch(cpus) is not None, f"{name} is {cpus!r}", remedy=remedy)
    else:
        require(least <= cpus < math.inf, f"{name} is {cpus}, at least {least} is possible")
