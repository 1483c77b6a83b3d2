"""Context switches and migrations of threads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SwitchCounts:
    """Counts of the ways in which threads left their CPUs.

    Attributes:
        voluntary: they went to sleep.
        involuntary: they were preempted.
        migrations: they continued on another CPU; ``None`` if the kernel does not count these.
    """

    voluntary: int = 0
    involuntary: int = 0
    migrations: int | None = 0

    def __add__(self, other: SwitchCounts) -> SwitchCounts:
        known = self.migrations is not None and other.migrations is not None
        return SwitchCounts(
            self.voluntary + other.voluntary,
            self.involuntary + other.involuntary,
            (self.migrations or 0) + (other.migrations or 0) if known else None,
        )
