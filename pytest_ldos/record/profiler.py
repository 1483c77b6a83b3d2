"""What samples processes, whatever the tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pytest_ldos.record.profiles.folded import FoldedStacks


@dataclass(frozen=True)
class Sampled:
    """What a profiler saw.

    Attributes:
        notes: what a reader must know: samples that were not understood, processes that were not sampled.
    """

    profile: FoldedStacks
    notes: tuple[str, ...] = ()


class Profiler(Protocol):
    """Samples running processes, and what they start from now on.

    Attributes:
        name: tool, version and rate, for notes.
    """

    name: str

    def start(self, processes: Mapping[int, str]) -> None:
        """Begins; returns when it samples.

        Args:
            processes: names of processes, by pid.

        Raises:
            ProfilingFailed: it did not get there; says what the tool said.
        """

    def stop(self) -> Sampled:
        """Ends it and reads what it saw.

        Raises:
            ProfilingFailed: it had ended before, or wrote nothing that can be read.
        """

    def cancel(self) -> None:
        """Ends it, whatever it saw. May be called at any time, also twice."""
