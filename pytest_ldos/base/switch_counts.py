"""Counts of threads that left their CPUs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SwitchCounts:
    """Numbers of switches of threads, by reason, and of migrations.

    Attributes:
        voluntary: they went to sleep.
        involuntary: they were preempted.
        migrations: they went on on another CPU; ``None`` where the kernel does not say.
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
