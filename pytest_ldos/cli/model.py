"""A trace that was named on the command line, to the model of some of its processes."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from pathlib import Path

from pytest_ldos.ctf.read import DecodedTrace, read_trace
from pytest_ldos.errors import ConfigurationError
from pytest_ldos.execution.build import NEEDED_EVENTS, build_execution
from pytest_ldos.execution.model import ExecutionModel
from pytest_ldos.execution.scheduling import SCHEDULING_EVENTS


class OnCorrupt(StrEnum):
    """What is to be done where a trace is damaged."""

    REFUSE = "refuse"
    SKIP = "skip"


def read_needed(trace: Path, on_corrupt: OnCorrupt) -> DecodedTrace:
    """The events that the model and thread states are made of."""
    return read_trace(trace, events=NEEDED_EVENTS | SCHEDULING_EVENTS, on_corrupt=on_corrupt.value)


def build_observed(decoded: DecodedTrace, pids: Collection[int] | None) -> ExecutionModel:
    """The model of the given processes, of all without any.

    Raises:
        ConfigurationError: one of them wrote nothing in the trace.
    """
    model = build_execution(decoded, pids=pids)
    strangers = sorted(set(pids or ()) - set(model.processes["pid"]))
    if strangers:
        there = ", ".join(str(pid) for pid in sorted(build_execution(decoded).processes["pid"]))
        raise ConfigurationError(f"process {strangers[0]} has no events in the trace", remedy=f"these have: {there}")
    return model
