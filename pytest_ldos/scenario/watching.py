"""Observers of processes in addition to the tracer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pytest_ldos.base.errors import require
from pytest_ldos.scenario.words import DEFAULT_RATE_HZ, ProfilerKind

_HIGHEST_RATE_HZ: Final = 10_000


@dataclass(frozen=True, kw_only=True)
class WatchSpec:
    """Selection of observers.

    Attributes:
        profile: True to sample call stacks.
        syscalls: True to count system calls.

    Raises:
        ConfigurationError: the rate is out of range.
    """

    profile: bool = False
    profiler: ProfilerKind = ProfilerKind.AUTO
    rate_hz: int = DEFAULT_RATE_HZ
    syscalls: bool = False

    def __post_init__(self) -> None:
        require(
            1 <= self.rate_hz <= _HIGHEST_RATE_HZ,
            f"a profile's rate is {self.rate_hz} Hz",
            remedy=f"it must be between 1 and {_HIGHEST_RATE_HZ}",
        )

    @property
    def is_asked(self) -> bool:
        return self.profile or self.syscalls
