"""Deadlines of a scenario for causal paths."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.requirements import require
from pytest_ldos.scenario.fields import build_spec

_NS_PER_MS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class DeadlineSpec:
    """A deadline that is expected to be kept.

    Attributes:
        path: name of a path, declared or built in.
        ms: from its beginning to its end.
        share: of the passages of a trial that are to keep it.
    """

    path: str
    ms: float
    share: float = 0.99

    def __post_init__(self) -> None:
        require(0 < self.ms < math.inf, f"the deadline of path {self.path!r} must be above 0 and finite")
        require(0 < self.share <= 1, f"share of the deadline of path {self.path!r} must lie above 0, and at most at 1")

    @property
    def ns(self) -> int:
        return round(self.ms * _NS_PER_MS)


def parse_deadlines(table: Any, where: str) -> tuple[DeadlineSpec, ...]:
    """Parses a table of deadlines by path: milliseconds, or a table with ``ms`` and ``share``.

    Raises:
        ConfigurationError: a wrong key, type or value.
    """
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{where} deadlines is {table!r}", remedy='write "NAME OF PATH" = MILLISECONDS')
    return tuple(
        build_spec(
            DeadlineSpec,
            {**(values if isinstance(values, Mapping) else {"ms": values}), "path": path},
            f"{where} deadlines {path!r}",
        )
        for path, values in table.items()
    )
