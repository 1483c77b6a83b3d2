"""Shared parts of commands on traces: their arguments, and the model of some processes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from pytest_ldos.base.errors import ConfigurationError, TraceUnreadable
from pytest_ldos.base.units import NS_PER_S
from pytest_ldos.fleet.request import SKIP_OPTION
from pytest_ldos.host.memory import available_bytes
from pytest_ldos.trace.ctf.read import SKIPPING, DecodedTrace, read_trace
from pytest_ldos.trace.ctf.read import OnCorrupt as ReadOnCorrupt
from pytest_ldos.trace.ctf.windows import content_bytes, open_in_windows
from pytest_ldos.trace.execution.build import NEEDED_EVENTS, build_execution, require_events
from pytest_ldos.trace.execution.build_windows import Spread, build_execution_in_windows
from pytest_ldos.trace.execution.model import ExecutionModel


class OnCorrupt(StrEnum):
    """Action for a damaged trace."""

    REFUSE = "refuse"
    SKIP = "skip"


TraceDirectory = Annotated[
    Path, typer.Argument(help="CTF trace or session of several: its directory, archive or address.")
]
Pids = Annotated[list[int] | None, typer.Option(help="Only this process; can be given several times.")]
Together = Annotated[
    bool, typer.Option("--together", help="Each folder is one trace, also where it holds those of several hosts.")
]
Damage = Annotated[
    OnCorrupt, typer.Option(help="What to do where the trace is damaged: refuse it, or skip the damage.")
]


@contextmanager
def naming_option() -> Iterator[None]:
    """Lets refusals of damaged traces advise the command's option.

    Raises:
        TraceUnreadable: see `read_trace`.
    """
    try:
        yield
    except TraceUnreadable as error:
        remedy = error.remedy.replace(SKIPPING, SKIP_OPTION)
        raise TraceUnreadable(error.path, error.offset, error.reason, remedy=remedy) from None


def build_observed(decoded: DecodedTrace, pids: Collection[int] | None) -> ExecutionModel:
    """The model of the given processes, of all without any.

    Raises:
        ConfigurationError: one of them wrote nothing in the trace.
        TraceUnreadable: no event of ROS 2 is in the trace.
    """
    model = build_execution(decoded, pids=pids)
    if not pids:
        require_events(model, decoded.directory)
    _require_observed(model, pids, lambda: build_execution(decoded))
    return model


def read_observed(
    trace: Path,
    pids: Collection[int] | None,
    *,
    on_corrupt: ReadOnCorrupt,
    window_s: float | None,
    spread: Spread | None = None,
) -> ExecutionModel:
    """Reads the model of the given processes, of all without any; in windows where it would not fit into memory.

    Args:
        window_s: length of each window; reads in windows in any case.
        spread: has windows read by other processes.

    Raises:
        ConfigurationError, TraceUnreadable: see `build_observed` and `open_in_windows`.
    """
    if window_s is None and _fits(trace):
        with naming_option():
            return build_observed(read_trace(trace, events=NEEDED_EVENTS, on_corrupt=on_corrupt), pids)
    window_ns = None if window_s is None else round(window_s * NS_PER_S)
    with naming_option(), open_in_windows(trace, window_ns=window_ns, on_corrupt=on_corrupt) as windows:
        model = build_execution_in_windows(windows, pids=pids, spread=spread)
        if not pids:
            require_events(model, trace)
        _require_observed(model, pids, lambda: build_execution_in_windows(windows))
    return model


_NEEDED: Final = 3.0
"""Memory that reading a trace whole takes, in multiples of its size."""

_SHARE: Final = 0.5
"""Share of the available memory that it may take."""


def _fits(trace: Path) -> bool:
    return content_bytes(trace) * _NEEDED < available_bytes() * _SHARE


def _require_observed(
    model: ExecutionModel, pids: Collection[int] | None, everybody: Callable[[], ExecutionModel]
) -> None:
    strangers = sorted(set(pids or ()) - set(model.processes["pid"]))
    if strangers:
        there = ", ".join(str(pid) for pid in sorted(everybody().processes["pid"]))
        raise ConfigurationError(f"process {strangers[0]} has no events in the trace", remedy=f"these have: {there}")
