"""``ldos export | profile``, and what commands on traces share: arguments, and the model of selected processes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError, TraceUnreadable, refuse_unknown
from pytest_ldos.base.files import writing
from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.cli.main import Command, make_group
from pytest_ldos.cli.measuring import Steps, step_bar, trace_bar
from pytest_ldos.cli.say import ANOTHER_OUTPUT, emit, emit_fitted, say, write_text
from pytest_ldos.fleet.choose import INSTALL, LOCAL, choose_scheduler, missing_package
from pytest_ldos.fleet.tasks import InProcess
from pytest_ldos.fleet.traces import SKIP_OPTION, Found, Request, TraceSummary, find_traces
from pytest_ldos.host.cgroup import available_bytes
from pytest_ldos.measure.metrics.model import Interfaces
from pytest_ldos.record import profiles
from pytest_ldos.show.export.parquet import (
    is_fleet_directory,
    is_model_directory,
    require_writable,
    staging_folder,
    write_fleet,
    write_parquet,
)
from pytest_ldos.show.export.perfetto import perfetto_messages, write_perfetto
from pytest_ldos.show.report import flame
from pytest_ldos.show.report.analysis import render_fleet
from pytest_ldos.trace.ctf.read import SKIPPING, DecodedTrace, content_bytes, open_in_windows, read_trace
from pytest_ldos.trace.ctf.read import OnCorrupt as ReadOnCorrupt
from pytest_ldos.trace.ctf.stats import describe_losses
from pytest_ldos.trace.execution import build
from pytest_ldos.trace.execution.coverage import describe_missing
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.scheduling import SCHEDULING_EVENTS, build_thread_states
from pytest_ldos.trace.flow.build import build_flow


class OnCorrupt(StrEnum):
    REFUSE = "refuse"
    SKIP = "skip"


Pids = Annotated[list[int] | None, typer.Option(help="Only this process; can be given several times.")]
Together = Annotated[
    bool, typer.Option("--together", help="Each folder is one trace, even if it contains those of several hosts.")
]
Damage = Annotated[OnCorrupt, typer.Option(help="What to do if the trace is damaged: refuse it, or skip the damage.")]


@contextmanager
def naming_option() -> Iterator[None]:
    """Adds the command's option to the remedy of `TraceUnreadable` for damaged traces."""
    try:
        yield
    except TraceUnreadable as error:
        remedy = error.remedy.replace(SKIPPING, SKIP_OPTION)
        raise TraceUnreadable(error.path, error.offset, error.reason, remedy=remedy) from None


@naming_option()
def read_observed(
    trace: Path,
    pids: Collection[int] | None,
    *,
    on_corrupt: ReadOnCorrupt,
    window_s: float | None,
) -> ExecutionModel:
    """Reads the model of the given processes, by default all.

    Reads in windows if their length is given, or if the model would not fit into memory.
    """
    if window_s is None and _fits(trace):
        decoded = read_trace(trace, events=build.NEEDED_EVENTS, on_corrupt=on_corrupt)
        return _observed(partial(build.build_execution, decoded), pids, decoded.directory)
    window_ns = None if window_s is None else round(window_s * NS_PER_S)
    with open_in_windows(trace, window_ns=window_ns, on_corrupt=on_corrupt) as windows:
        return _observed(partial(build.build_execution_in_windows, windows), pids, trace)


def _fits(trace: Path) -> bool:
    """True if three times the trace's size, which reading takes, is less than half of the available memory."""
    return content_bytes(trace) * 3.0 < available_bytes() * 0.5


def _observed(build_model: Callable[..., ExecutionModel], pids: Collection[int] | None, trace: Path) -> ExecutionModel:
    """The model of the given processes, by default all; refuses processes and traces without events of ROS 2."""
    model = build_model(pids=pids)
    if not pids:
        build.require_events(model, trace)
    if silent := sorted(set(pids or ()) - set(model.processes["pid"])):
        there = ", ".join(str(pid) for pid in sorted(build_model(pids=None).processes["pid"]))
        raise ConfigurationError(f"process {silent[0]} has no events in the trace", remedy=f"these have: {there}")
    return model


def parse_interfaces(texts: Sequence[str], usual: Interfaces) -> Interfaces:
    """Parses interfaces such as ``action=/move_action``; missing ones have their `usual` names."""
    given: dict[str, str] = {}
    for text in texts:
        kind, separator, name = text.partition("=")
        if not separator:
            raise ConfigurationError(f"{text!r} names no interface", remedy="give one like action=/move_action")
        given[kind] = name
    refuse_unknown(given, {each.name for each in fields(Interfaces)}, "interface")
    return replace(usual, **given)


def analyze_many(
    traces: Sequence[Found],
    request: Request,
    *,
    scheduler: str | None,
    workers: int | None,
    output: Path | None,
    force: bool,
    whole: bool,
) -> None:
    """Prints the summary and writes the data set; ends the command with `INVALID` if a trace could not be read."""
    chosen = choose_scheduler(scheduler, workers=workers)
    if output is not None:
        refuse_existing(output, is_fleet_directory, force=force, made_by="this command")
        with writing(output, otherwise=ANOTHER_OUTPUT):  # before hours of reading
            require_writable(output)
    missing = missing_package(LOCAL) if scheduler is None else ""
    if missing:
        remedy = f"{INSTALL} reads several at once"
        say(f"{missing} is not installed: the traces are read one by one ({remedy})", err=True)
    found: dict[str, TraceSummary] = {}
    asked = request if isinstance(chosen, InProcess) else replace(request, threads=1)
    with trace_bar(len(traces)) as step:
        for summary in chosen.summarize(traces, asked):
            found[summary.trace] = summary
            step()
    summaries = [found[each.name] for each in traces]
    emit_fitted(render_fleet, summaries, whole=whole)
    if output is not None:
        with writing(output, otherwise=ANOTHER_OUTPUT):
            write_fleet(summaries, output)
        say(f"tables: {output}")
    if any(each.problem for each in summaries):
        raise typer.Exit(exit_codes.INVALID)


class Format(StrEnum):
    PERFETTO = "perfetto"
    PARQUET = "parquet"


_SUFFIXES: Final = {Format.PERFETTO: ".pftrace", Format.PARQUET: ".tables"}


def export(
    trace: Annotated[Path, typer.Argument(help="CTF trace or session of several: its directory, archive or address.")],
    *,
    to: Annotated[
        Format, typer.Option(help="perfetto: a file for Perfetto's UI (extra report); parquet: a directory of tables.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="File or folder to write; NAME.pftrace or NAME.tables here by default."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output of an earlier export.")] = False,
    pid: Pids = None,
    together: Together = False,
    on_corrupt: Damage = OnCorrupt.REFUSE,
) -> None:
    """Write a trace for Perfetto's UI, or as Parquet tables."""
    found = find_traces([trace], together=together)
    if len(found) > 1:
        names = ", ".join(each.name for each in found[:2])
        message = f"{trace} holds {len(found)} traces, the first of which are {names}"
        raise ConfigurationError(message, remedy="name one of them, or export them as one trace: --together")
    if to is Format.PERFETTO:
        perfetto_messages()  # before minutes of reading
    target = output or Path(trace.resolve().name + _SUFFIXES[to])
    refuse_existing(target, _is_perfetto if to is Format.PERFETTO else is_model_directory, force=force)
    with step_bar() as show:
        show("reading", 0, 1)
        with naming_option():
            decoded = read_trace(trace, events=build.NEEDED_EVENTS | SCHEDULING_EVENTS, on_corrupt=on_corrupt.value)
        show("building the model", 0, 1)
        model = _observed(partial(build.build_execution, decoded), pid, decoded.directory)
        with writing(target, otherwise=ANOTHER_OUTPUT):
            if to is Format.PERFETTO:
                _write_perfetto(decoded, model, target, show)
            else:
                show("writing", 0, 1)
                write_parquet(model, target)
    _report(decoded, model, target, to)


def refuse_existing(
    target: Path, is_ours: Callable[[Path], bool], *, force: bool, made_by: str = "this export"
) -> None:
    """Raises `ConfigurationError` for an existing target, unless it may be replaced."""
    if not target.exists() and not target.is_symlink():
        return
    if not is_ours(target):
        raise ConfigurationError(
            f"{target} exists and is not an output of {made_by}", remedy="name another path with --output"
        )
    if not force:
        raise ConfigurationError(f"{target} exists", remedy="name another path with --output, or replace it: --force")


def _is_perfetto(target: Path) -> bool:
    """True if a file is empty, or begins with the tag of a Perfetto packet."""
    if not target.is_file():
        return False
    with target.open("rb") as file:
        return file.read(1) in {b"", b"\n"}


def _write_perfetto(decoded: DecodedTrace, model: ExecutionModel, target: Path, show: Steps) -> None:
    """Replaces the target when the file is complete."""
    show("linking messages", 0, 1)
    flow, states = build_flow(model), build_thread_states(decoded)
    with staging_folder(target) as folder:
        path = folder / target.name
        with path.open("wb") as file:
            write_perfetto(model, file, flow=flow, thread_states=states, progress=partial(show, "writing"))
        path.replace(target)


def _report(decoded: DecodedTrace, model: ExecutionModel, target: Path, to: Format) -> None:
    counts = f"{len(model.callback_runs)} callback runs, {len(model.publications)} publications"
    size = sum(file.stat().st_size for file in ([target] if target.is_file() else target.iterdir()))
    shown = f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.1f} kB"
    say(f"wrote {target}: {counts}, {len(model.takes)} receptions ({shown})")
    if to is Format.PERFETTO:
        say("open it in Perfetto's UI (Open trace file)")
    for each in model.missing_events:
        say(describe_missing(each, model.processes), err=True)
    if not len(model.callback_runs) + len(model.publications) + len(model.takes):
        say("the trace has no callback run, publication or reception of the chosen processes", err=True)
    if unknown := ", ".join(f"{count} {table}" for table, count in model.unknown.items()):
        say(f"without a name, as tracing began after they were made: {unknown}", err=True)
    if lost := describe_losses(decoded.stats.losses):
        say(f"the trace is incomplete: {lost}; callbacks without an end are drawn up to the next one", err=True)


profile_app = make_group(help="Show the processes' CPU time by function, and its changes.", no_args_is_help=True)

_FOLDED: Final = ".folded"

Profile = Annotated[Path, typer.Argument(help="A .folded file, or a folder of them: one a start of that version.")]


@profile_app.command(cls=Command)
def show(
    profile: Profile,
    output: Annotated[
        Path | None, typer.Option(help="File: .svg (flame graph), .json (for speedscope.app) or .folded.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Number of listed functions.")] = 20,
) -> None:
    """Show in which functions the time of a profile went.

    For each, counts the samples in itself, and those including its callees.
    """
    found = profiles.merge(_parts(profile))
    if output is None:
        emit(flame.render_profile(found, top))
        return
    renderers: dict[str, Callable[[], str]] = {
        flame.SVG: lambda: flame.render_flame(found, str(profile)),
        ".json": lambda: profiles.render_speedscope(found, str(profile)),
        _FOLDED: lambda: profiles.render_folded(found),
    }
    if output.suffix not in renderers:
        endings = ", ".join(renderers)
        raise ConfigurationError(f"{output} has no format of a profile", remedy=f"let it end with {endings}")
    write_text(renderers[output.suffix](), output, what="profile")


@profile_app.command(cls=Command)
def diff(
    base: Profile,
    head: Profile,
    output: Annotated[Path | None, typer.Option(help="File for the differential flame graph: .svg.")] = None,
) -> None:
    """Compare the shares of functions in two profiles.

    Only significant changes are listed.
    """
    if output is not None and output.suffix != flame.SVG:
        raise ConfigurationError(f"{output} is not a drawing", remedy=f"let it end with {flame.SVG}")
    difference = profiles.compare_profiles(_parts(base), _parts(head))
    for line in (*flame.describe_noise(difference), *flame.describe_changes(difference)):
        say(line)
    if output is not None:
        write_text(flame.render_flame_difference(difference, f"{base} → {head}"), output, what="profile")


def _parts(place: Path) -> list[profiles.FoldedStacks]:
    if not place.is_dir():
        return [profiles.read_folded(place)]
    if not (files := sorted(place.glob(f"*{_FOLDED}"))):
        raise ConfigurationError(f"{place} holds no profiles", remedy=f"name a folder with {_FOLDED} files")
    return [profiles.read_folded(file) for file in files]
