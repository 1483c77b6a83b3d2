"""Counts of context switches."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SwitchCounts:
    """Numbers of context switches, by reason, and of migrations.

    Attributes:
        voluntary: the thread went to sleep.
        involuntary: the thread was preempted.
        migrations: the thread continued on another CPU; ``None`` if the kernel does not report them.
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
