"""Shared parts of commands on traces: arguments, and the model of selected processes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError, TraceUnreadable, refuse_unknown
from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.base.writable import writing
from pytest_ldos.cli.paths import ANOTHER_OUTPUT, terminal
from pytest_ldos.cli.progress import trace_bar
from pytest_ldos.cli.say import emit, say
from pytest_ldos.fleet.choose import INSTALL, LOCAL, choose_scheduler, missing_package
from pytest_ldos.fleet.find import Found
from pytest_ldos.fleet.measure import SKIP_OPTION, Request, TraceSummary
from pytest_ldos.fleet.protocol import InProcess, Scheduler
from pytest_ldos.host.cgroup import available_bytes
from pytest_ldos.measure.metrics.model import Interfaces
from pytest_ldos.show.export.parquet import is_fleet_directory, require_writable, write_fleet
from pytest_ldos.show.report.fleet import render_fleet
from pytest_ldos.trace.ctf.read import SKIPPING, DecodedTrace, read_trace
from pytest_ldos.trace.ctf.read import OnCorrupt as ReadOnCorrupt
from pytest_ldos.trace.ctf.windows import content_bytes, open_in_windows
from pytest_ldos.trace.execution.build import (
    NEEDED_EVENTS,
    Spread,
    build_execution,
    build_execution_in_windows,
    require_events,
)
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
    bool, typer.Option("--together", help="Each folder is one trace, even if it contains those of several hosts.")
]
Damage = Annotated[OnCorrupt, typer.Option(help="What to do if the trace is damaged: refuse it, or skip the damage.")]


@contextmanager
def naming_option() -> Iterator[None]:
    """Adds the command's option to the remedy for damaged traces.

    Raises:
        TraceUnreadable: see `read_trace`.
    """
    try:
        yield
    except TraceUnreadable as error:
        remedy = error.remedy.replace(SKIPPING, SKIP_OPTION)
        raise TraceUnreadable(error.path, error.offset, error.reason, remedy=remedy) from None


def build_observed(decoded: DecodedTrace, pids: Collection[int] | None) -> ExecutionModel:
    """The model of the given processes, by default all.

    Raises:
        ConfigurationError: one of them has no events in the trace.
        TraceUnreadable: the trace has no events of ROS 2.
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
    """Reads the model of the given processes, by default all; in windows if it would not fit into memory.

    Args:
        window_s: length of each window; if given, always reads in windows.
        spread: reads windows in other processes.

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
"""Memory for reading a trace at once, in multiples of its size."""

_SHARE: Final = 0.5
"""Share of the available memory that this may take."""


def _fits(trace: Path) -> bool:
    return content_bytes(trace) * _NEEDED < available_bytes() * _SHARE


def _require_observed(
    model: ExecutionModel, pids: Collection[int] | None, everybody: Callable[[], ExecutionModel]
) -> None:
    silent = sorted(set(pids or ()) - set(model.processes["pid"]))
    if silent:
        there = ", ".join(str(pid) for pid in sorted(everybody().processes["pid"]))
        raise ConfigurationError(f"process {silent[0]} has no events in the trace", remedy=f"these have: {there}")


def parse_interfaces(texts: Sequence[str], usual: Interfaces) -> Interfaces:
    """Parses interfaces such as ``action=/move_action``; missing ones have their `usual` names.

    Raises:
        ConfigurationError: a text does not have this form, or names an unknown interface.
    """
    given = dict(_parse(text) for text in texts)
    refuse_unknown(given, {each.name for each in dataclasses.fields(Interfaces)}, "interface")
    return dataclasses.replace(usual, **given)


def _parse(text: str) -> tuple[str, str]:
    kind, separator, name = text.partition("=")
    if not separator:
        raise ConfigurationError(f"{text!r} names no interface", remedy="give one like action=/move_action")
    return kind, name


@dataclass(frozen=True, kw_only=True)
class Many:
    """Settings of the analysis of many traces.

    Attributes:
        scheduler: as requested; ``None`` if not.
        output: directory of the data set; ``None`` without one.
        whole: show all traces.
    """

    scheduler: str | None
    workers: int | None
    output: Path | None
    force: bool
    whole: bool


def analyze_many(traces: Sequence[Found], request: Request, many: Many) -> None:
    """Prints the summary and writes the data set; ends the command with `INVALID` if a trace could not be read."""
    scheduler = choose_scheduler(many.scheduler, workers=many.workers)
    if many.output is not None:
        _refuse_existing(many.output, force=many.force)
        with writing(many.output, otherwise=ANOTHER_OUTPUT):  # before hours of reading
            require_writable(many.output)
    missing = missing_package(LOCAL) if many.scheduler is None else ""
    if missing:
        remedy = f"{INSTALL} reads several at once"
        say(f"{missing} is not installed: the traces are read one by one ({remedy})", err=True)
    summaries = _summarize(scheduler, traces, request)
    width, color = terminal()
    emit(render_fleet(summaries, width=width, color=color, whole=many.whole))
    if many.output is not None:
        with writing(many.output, otherwise=ANOTHER_OUTPUT):
            write_fleet(summaries, many.output)
        say(f"tables: {many.output}")
    if any(each.problem for each in summaries):
        raise typer.Exit(exit_codes.INVALID)


def _summarize(scheduler: Scheduler, traces: Sequence[Found], request: Request) -> list[TraceSummary]:
    """Summaries in the order of traces."""
    asked = request if isinstance(scheduler, InProcess) else replace(request, threads=1)
    found: dict[str, TraceSummary] = {}
    summaries = scheduler.summarize(traces, asked)
    with trace_bar(len(traces)) as step:
        for summary in summaries:
            found[summary.trace] = summary
            step()
    return [found[each.name] for each in traces]


def _refuse_existing(target: Path, *, force: bool) -> None:
    if not target.exists() and not target.is_symlink():
        return
    if not is_fleet_directory(target):
        raise ConfigurationError(
            f"{target} exists and is not an output of this command", remedy="name another path with --output"
        )
    if not force:
        raise ConfigurationError(f"{target} exists", remedy="name another path with --output, or replace it: --force")
