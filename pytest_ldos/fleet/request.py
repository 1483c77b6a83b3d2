"""Settings for measuring each trace, the same on every worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from pytest_ldos.base.paths import PathSpec
from pytest_ldos.measure.metrics.load_own import OwnSource
from pytest_ldos.measure.metrics.model import Interfaces
from pytest_ldos.scenario.metrics import MetricSpec

SKIP_OPTION: Final = "--on-corrupt skip"
"""The option of commands by which damage is skipped."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """Settings for measuring traces.

    Attributes:
        nominal_period_ns: nominal period of the control loop.
        interfaces: names, in this stack, of the interfaces by which goals are recognised.
        usual: the project's configured names; a different action must occur in the trace.
        paths: the project's causal paths, for user metrics that use message flow.
        own: the user's own metrics; loaded where the trace is read.
        declared: the project's metrics of paths and topics.
        on_corrupt: see `ctf.read.read_trace`.
        threads: number of decoding threads; by default one per CPU.
    """

    nominal_period_ns: int
    interfaces: Interfaces
    usual: Interfaces
    paths: tuple[PathSpec, ...] = ()
    own: OwnSource | None = None
    declared: tuple[MetricSpec, ...] = ()
    on_corrupt: Literal["refuse", "skip"] = "refuse"
    threads: int | None = None
