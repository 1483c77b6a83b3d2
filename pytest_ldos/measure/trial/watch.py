"""Observers of a stack during trials in addition to the tracer: a profiler, a counter of system calls."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from pytest_ldos.measure.trial.rig import Rig


class Watch(Protocol):
    """Watches one version of a stack, in all its starts.

    Attributes:
        tools: tools that are to watch; after watching, those that did. Empty if there are none.
        distortion: reason why the trials' times are not comparable with others; empty if they are.
    """

    @property
    def tools(self) -> str: ...

    @property
    def distortion(self) -> str: ...

    def beside(self, rig: Rig) -> AbstractContextManager[None]:
        """Watches while the context lasts, during trials. A failure to watch ends no trials."""

    def read(self, rig: Rig, trials: int) -> None:
        """Reads what was watched; called while the recording is paused, after the given number of trials."""
