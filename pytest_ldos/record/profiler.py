"""Interface of the profilers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pytest_ldos.record.profiles.folded import FoldedStacks


@dataclass(frozen=True)
class Sampled:
    """Samples of a profiler.

    Attributes:
        notes: for the reader: samples that were not understood, processes that were not sampled.
    """

    profile: FoldedStacks
    notes: tuple[str, ...] = ()


class Profiler(Protocol):
    """Samples running processes, and processes they start from now on.

    Attributes:
        name: tool, version and rate, for notes.
    """

    name: str

    def start(self, processes: Mapping[int, str]) -> None:
        """Begins to sample; returns when it does.

        Args:
            processes: names of processes, by pid.

        Raises:
            ProfilingFailed: it could not begin; quotes the tool's output.
        """

    def stop(self) -> Sampled:
        """Ends the sampling and reads the samples.

        Raises:
            ProfilingFailed: it had ended before, or wrote nothing that can be read.
        """

    def cancel(self) -> None:
        """Ends the sampling and drops the samples. May be called at any time, also twice."""
