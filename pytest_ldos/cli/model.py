"""Shared parts of commands on traces: their arguments, and the model of some processes."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.trace.ctf.read import DecodedTrace
from pytest_ldos.trace.execution.build import build_execution
from pytest_ldos.trace.execution.model import ExecutionModel


class OnCorrupt(StrEnum):
    """Action for a damaged trace."""

    REFUSE = "refuse"
    SKIP = "skip"


TraceDirectory = Annotated[
    Path, typer.Argument(help="CTF trace or session of several: its directory, archive or address.")
]
Pids = Annotated[list[int] | None, typer.Option(help="Only this process; can be given several times.")]
Damage = Annotated[
    OnCorrupt, typer.Option(help="What to do where the trace is damaged: refuse it, or skip the damage.")
]


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
