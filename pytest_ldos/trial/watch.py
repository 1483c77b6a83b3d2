"""Something beside the tracer that watches a stack while trials are made: a profiler, a counter of system calls."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from pytest_ldos.trial.rig import Rig


class Watch(Protocol):
    """Watches one version of a stack, in all its starts.

    Attributes:
        tools: that are to watch, and once they could, those that did; empty where none does.
        distortion: why the trials' times compare with no others; empty where they do.
    """

    @property
    def tools(self) -> str: ...

    @property
    def distortion(self) -> str: ...

    def beside(self, rig: Rig) -> AbstractContextManager[None]:
        """Watches while the context lasts: trials are made. What cannot be watched ends no trials."""

    def read(self, rig: Rig, trials: int) -> None:
        """The recording is paused, after so many trials: what it holds can be read."""


class NoWatch:
    """See `Watch`: nothing."""

    tools = ""
    distortion = ""

    def beside(self, rig: Rig) -> AbstractContextManager[None]:
        return nullcontext()

    def read(self, rig: Rig, trials: int) -> None: ...
