"""Input of a metric: one trial in the model of its trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import polars as pl

from pytest_ldos.base.paths import PathSpec
from pytest_ldos.base.series import Missing
from pytest_ldos.base.stats.moments import Moments
from pytest_ldos.base.tracepoints import Phase
from pytest_ldos.host.process_resources import StackUse
from pytest_ldos.measure.metrics.model import USUAL, Interfaces, Window
from pytest_ldos.measure.metrics.unmarked import has_controllers
from pytest_ldos.trace.execution.missing_events import name_missing
from pytest_ldos.trace.execution.model import ExecutionModel, TrialSpan
from pytest_ldos.trace.flow.graph import FlowGraph
from pytest_ldos.trace.flow.paths import PathInstances, find_path


class TraceFlow:
    """The flow graph of a trace, built on first use, with a cache of the paths searched in it."""

    def __init__(self, build: Callable[[], FlowGraph]) -> None:
        self._build = build
        self._found: dict[PathSpec, PathInstances] = {}

    @cached_property
    def graph(self) -> FlowGraph:
        return self._build()

    def find_path(self, path: PathSpec) -> PathInstances:
        """All passages of the trace along a path."""
        if path not in self._found:
            self._found[path] = find_path(self.graph, path)
        return self._found[path]


@dataclass(frozen=True, kw_only=True)
class OutsideTrace:
    """Measurements of a trial outside its trace.

    Attributes:
        numbers: by the stimulus itself, by name.
        resources: use of resources by the stack's processes; ``None`` where it was not measured.
        loops: what the controller manager said of the trial, by its own names; ``None`` where it was not asked.
    """

    numbers: Mapping[str, float] = field(default_factory=dict)
    resources: StackUse | None = None
    loops: Mapping[str, Moments] | None = None


NOTHING_OUTSIDE: Final = OutsideTrace()


@dataclass(frozen=True, kw_only=True)
class TrialContext:
    """One trial and its trace.

    Attributes:
        trial: its phases, plan and error code.
        model: execution model of the whole trace.
        nominal_period_ns: of the control loop.
        trace_flow: message flow of the whole trace.
        outside: what was measured of the trial outside its trace.
    """

    trial: TrialSpan
    model: ExecutionModel
    nominal_period_ns: int
    trace_flow: TraceFlow
    interfaces: Interfaces = USUAL
    outside: OutsideTrace = NOTHING_OUTSIDE

    @property
    def flow(self) -> FlowGraph:
        """Message-flow graph; built when the first metric asks for it, once for all trials."""
        return self.trace_flow.graph

    def passages(self, path: PathSpec, window: Window) -> pl.DataFrame:
        """Passages along a path that ended within a window.

        Columns: `begin_ns`, `end_ns`, `latency_ns` and the others of `PathInstances`.

        Raises:
            ConfigurationError: too many messages could lie on the path.
        """
        found = self.trace_flow.find_path(path).table
        return found.filter(pl.col("end_ns").is_between(*window))

    def not_seen(self, reason: str) -> Missing:
        """The reason why a metric has no value, with the events that the trace lacks."""
        without = name_missing(self.model)
        return Missing(f"{reason}, or the trace does not show it ({without})" if without else reason)

    def planning_window(self) -> Window | Missing:
        return self.between(Phase.PLANNING, Phase.EXECUTING)

    def execution_window(self) -> Window | Missing:
        return self.between(Phase.EXECUTING, Phase.RESULT)

    def trial_window(self) -> Window | Missing:
        return self.between(self.trial.first_phase, Phase.RESULT)

    def between(self, first: Phase, last: Phase) -> Window | Missing:
        """Span from one phase to a later one, or the reason why there is none."""
        phases = self.trial.phases
        for phase in (first, last):
            if phase not in phases:
                return Missing(self._why_not(phase))
        return phases[first], phases[last]

    def _why_not(self, phase: Phase) -> str:
        if not self.trial.marked and Phase.GOAL_ACCEPTED not in self.trial.phases:
            return "that the goal was accepted is not in the trace"
        if phase is Phase.EXECUTING and not self.trial.marked and not has_controllers(self.model):
            return "no action of a controller is in the trace, which would tell when execution began"
        return f"the trial never entered phase '{phase}'"
