"""A profiler that finds made-up samples, for runs on fake stacks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.record.profiles import FoldedStacks
from pytest_ldos.record.protocol import Sampled
from pytest_ldos.scenario.words import ProfilerKind

HOT = "<b>|check_scene|</b>\x1b[31m (arm/planner.py:{line})"
"""A hostile name, on a line that an edit has moved."""


def samples(role: str, hot: int) -> FoldedStacks:
    line = 12 if role == "base" else 31
    stack = ("planner", "run (arm/node.py:3)", f"plan (arm/planner.py:{line})")
    steps = {("planner", "spin (arm/node.py:9)"): 900, stack: 300}
    return FoldedStacks({**steps, (*stack, HOT.format(line=line)): hot if role == "head" else 3})


@dataclass
class FakeProfiler:
    """See `Profiler`; the role is that of the block whose logs are in the folder."""

    logs: Path
    hot: int
    name: str = "fake profiler 1.0"

    def start(self, processes: Mapping[int, str]) -> None:
        assert processes

    def stop(self) -> Sampled:
        return Sampled(samples(self.logs.parent.name.partition("-")[2], self.hot))

    def cancel(self) -> None: ...


def install_profiler(*, hot: int = 400, reason: str = "") -> None:
    """Makes the plugin of this process use fakes; with a `reason`, none is available."""
    from pytest_ldos.campaign import watching
    from tests.fakes import rig

    def resolve(kind: ProfilerKind) -> ProfilerKind:
        if reason:
            raise Unavailable(reason, remedy="install one")
        return kind

    def choose(kind: ProfilerKind, logs: Path, **_: Any) -> FakeProfiler:
        return FakeProfiler(logs, hot)

    rig.PID = os.getpid()
    vars(watching).update(resolve_profiler=resolve, choose_profiler=choose)
