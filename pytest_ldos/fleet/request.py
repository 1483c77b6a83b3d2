"""What is asked of each trace, the same wherever it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pytest_ldos.metrics.load_own import OwnSource
from pytest_ldos.metrics.model import Interfaces
from pytest_ldos.scenario.paths import PathSpec


@dataclass(frozen=True, kw_only=True)
class Request:
    """How traces are to be measured.

    Attributes:
        nominal_period_ns: of the control loop.
        interfaces: what the stack calls that by which goals are known.
        usual: what the project calls it; another action must be in the trace.
        paths: of the project; what own metrics see of message flow knows them.
        own: metrics of a user's own; loaded where the trace is read.
        on_corrupt: see `ctf.read.read_trace`.
        threads: that decode at once; by default as many as there are CPUs.
    """

    nominal_period_ns: int
    interfaces: Interfaces
    usual: Interfaces
    paths: tuple[PathSpec, ...] = ()
    own: OwnSource | None = None
    on_corrupt: Literal["refuse", "skip"] = "refuse"
    threads: int | None = None
