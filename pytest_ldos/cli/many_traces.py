"""``ldos analyze`` of many traces: who reads them, progress, and one summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.writable import writing
from pytest_ldos.cli.bars import trace_bar
from pytest_ldos.cli.paths import ANOTHER_OUTPUT, terminal
from pytest_ldos.cli.say import emit, say
from pytest_ldos.fleet.choose import INSTALL, LOCAL, choose_scheduler, missing_package
from pytest_ldos.fleet.find import Found
from pytest_ldos.fleet.in_process import InProcess
from pytest_ldos.fleet.protocol import Scheduler
from pytest_ldos.fleet.request import Request
from pytest_ldos.fleet.summary import TraceSummary
from pytest_ldos.show.export.fleet_tables import is_fleet_directory, require_writable, write_fleet
from pytest_ldos.show.report.fleet import render_fleet


@dataclass(frozen=True, kw_only=True)
class Many:
    """Settings of the analysis of many traces.

    Attributes:
        scheduler: as it was asked for; ``None`` where it was not.
        output: directory of the data set; ``None`` without one.
        whole: show all traces.
    """

    scheduler: str | None
    workers: int | None
    output: Path | None
    force: bool
    whole: bool


def analyze_many(traces: Sequence[Found], request: Request, many: Many) -> None:
    """Prints the summary, and writes the data set; ends the command with `INVALID` where a trace could not be read."""
    scheduler = choose_scheduler(many.scheduler, workers=many.workers)
    if many.output is not None:
        _refuse_existing(many.output, force=many.force)
        with writing(many.output, otherwise=ANOTHER_OUTPUT):  # not only after hours of reading
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
    """In the order of traces, whoever finished first."""
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
            f"{target} exists and is nothing that this command would write", remedy="name another place with --output"
        )
    if not force:
        raise ConfigurationError(f"{target} exists", remedy="name another place with --output, or replace it: --force")
