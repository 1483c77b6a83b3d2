"""``ldos analyze TRACE…``: analyses a trace, many traces, or runs of two versions."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.files import require_writable_file, writing
from pytest_ldos.base.text import Rendered, format_duration
from pytest_ldos.cli.measuring import MetricsOption, step_bar
from pytest_ldos.cli.say import ANOTHER_OUTPUT, emit_fitted, emit_text, say, sources_here
from pytest_ldos.cli.traces import (
    Damage,
    OnCorrupt,
    Pids,
    Together,
    analyze_many,
    parse_interfaces,
    read_observed,
    refuse_existing,
)
from pytest_ldos.fleet.traces import Request, find_traces
from pytest_ldos.measure.metrics.catalogue import OwnMetric, OwnSource, catalogue_of, load_metrics
from pytest_ldos.measure.metrics.declared import in_traces
from pytest_ldos.measure.metrics.extract import extract_metrics
from pytest_ldos.measure.metrics.model import Interfaces, require_action
from pytest_ldos.measure.metrics.own_events import own_events
from pytest_ldos.measure.metrics.regularity import nominal_period_ns
from pytest_ldos.show.export.parquet import is_model_directory, write_parquet
from pytest_ldos.show.page.formats import format_of, require_format
from pytest_ldos.show.report.analysis import Analysis, render_analysis
from pytest_ldos.show.report.trace_against import SeenRun, render_against, see_run
from pytest_ldos.trace.ctf.files import address_of
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.observed import OwnEvents
from pytest_ldos.trace.execution.scheduling import SCHEDULING_EVENTS, build_thread_states
from pytest_ldos.trace.execution.threads import shift_clocks
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.transport import Bound, ClockOffset, estimate_clock_offsets


def find_runs(heads: Sequence[Path], bases: Sequence[Path], *, together: bool) -> tuple[Sequence[Path], Sequence[Path]]:
    """Lists the traces of each side; a folder of several is several runs, unless they belong `together`."""

    def runs_at(place: Path) -> list[Path]:
        found = find_traces([place], together=together)
        return [place] if len(found) == 1 else [each.path for each in found]

    ours, theirs = ([each for place in side for each in runs_at(place)] for side in (heads, bases))
    for place, times in Counter(address_of(each) or str(each.resolve()) for each in (*ours, *theirs)).items():
        if times > 1:
            raise ConfigurationError(f"{place} is named {times} times", remedy="name each run once")
    return ours, theirs


def see_runs(
    heads: Sequence[Path], bases: Sequence[Path], read: Callable[[Path], tuple[Analysis, list[str]]], *, drawn: bool
) -> tuple[list[SeenRun], list[SeenRun], list[str]]:
    """Reads one trace after the other, without keeping them; returns head's and base's facts, and notes on clocks.

    Refuses copies, and traces without a common node.
    """
    notes: list[str] = []
    parts = {each: each.resolve().parts for each in (*bases, *heads)}
    count = 1  # of the last parts of each path that are shown, to distinguish all
    while len({each[-count:] for each in parts.values()}) < len(parts):
        count += 1

    def see(place: Path) -> SeenRun:
        analysis, more = read(place)
        notes.extend(more)
        return see_run(replace(analysis, name="/".join(parts[place][-count:])), drawn=drawn)

    of_bases, of_heads = ([see(each) for each in side] for side in (bases, heads))
    first, *others = runs = [*of_bases, *of_heads]
    for one, other in ((one, other) for number, one in enumerate(runs) for other in runs[:number]):
        if one.extent == other.extent and one.run.things == other.run.things:
            raise ConfigurationError(f"{other.name} and {one.name} are the same trace", remedy="name each run once")
    for each in others:
        if not each.run.nodes & first.run.nodes:
            raise ConfigurationError(
                f"{first.name} and {each.name} have no node in common",
                remedy="compare traces of the same system, recorded from before its nodes start",
            )
    return of_heads, of_bases, notes


ESTIMATE = "estimate"


def find_clock_offsets(model: ExecutionModel, asked: Sequence[str]) -> tuple[dict[str, int], list[str]]:
    """Corrections of the hosts' clocks, ns by host name, and notes on them.

    Args:
        asked: ``HOST=NANOSECONDS``, a TOML file of such entries, or ``estimate``, which uses messages between the
            hosts. A clock with messages in one direction only has a bound, and is not corrected.
    """
    offsets: dict[str, int] = {}
    notes: list[str] = []
    for each in asked:
        if each == ESTIMATE:
            estimated = estimate_clock_offsets(build_flow(model))
            offsets |= {host: offset.offset_ns for host, offset in estimated.items() if offset.bound is None}
            notes += _describe(estimated)
        elif "=" in each:
            host, _, number = each.rpartition("=")
            try:
                offsets[host] = int(number)
            except ValueError:
                raise ConfigurationError(f"clock offset {each!r} has no number", remedy="HOST=NANOSECONDS") from None
        else:
            offsets |= _read(Path(each))
    return offsets, notes


def _describe(estimated: dict[str, ClockOffset]) -> Iterator[str]:
    for host, offset in estimated.items():
        if offset.bound is not None:
            known = offset.bound if offset.bound is Bound.NONE else f"{offset.bound} {offset.offset_ns:+d} ns"
            yield (
                f"clock of {host}: not corrected; its offset is {known} ({offset.messages} messages, all in one "
                f"direction): if it is known from elsewhere, give it as --clock-offset {host}=NANOSECONDS"
            )
        elif offset.messages:
            exact = f"± {format_duration(offset.uncertainty_ns or 0)}, by {offset.messages} messages"
            yield f"clock of {host}: {offset.offset_ns:+d} ns ({exact})"


def _read(file: Path) -> dict[str, int]:
    try:
        table = tomllib.loads(file.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        remedy = f"give HOST=NANOSECONDS, a TOML file of such entries, or {ESTIMATE!r}"
        raise ConfigurationError(f"clock offsets cannot be read from {file}: {error}", remedy=remedy) from None
    for host, number in table.items():
        if isinstance(number, bool) or not isinstance(number, int):
            raise ConfigurationError(f"{file}: the offset of {host} is {number!r}", remedy="whole nanoseconds")
    return table


Traces = Annotated[
    list[Path],
    typer.Argument(
        metavar="TRACE…",
        help="CTF traces or LTTng sessions: directories, archives (.tar, also .gz, .xz, .bz2, .zst; .zip), addresses "
        "(s3://…), or folders that hold many.",
    ),
]

_REPORTS: Final = frozenset({".html", ".md", ".json"})


def analyze(  # noqa: PLR0913 - an argument is an option of the command
    traces: Traces,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Also write: NAME.html, a page to look at; NAME.md; NAME.json; or a folder of Parquet, the model's "
            "tables, of many traces a data set of all goals.",
        ),
    ] = None,
    against: Annotated[
        list[Path] | None,
        typer.Option(metavar="BASE…", help="Runs of another version to compare with those of TRACE."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace earlier tables.")] = False,
    pid: Pids = None,
    clock_offset: Annotated[
        list[str] | None,
        typer.Option(help="Correction of a host's times: HOST=NANOSECONDS, a TOML file of these, or 'estimate'."),
    ] = None,
    on_corrupt: Damage = OnCorrupt.REFUSE,
    interface: Annotated[
        list[str] | None,
        typer.Option(help="Names that differ from the project's: action=/NAME, joint_states=/TOPIC, clock=/TOPIC."),
    ] = None,
    metrics: MetricsOption = None,
    whole: Annotated[bool, typer.Option("--all", help="Show all rows of each table.")] = False,
    together: Together = False,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help=(
                "Dask scheduler for many traces: local (processes here; default), synchronous (this process), or "
                "tcp://HOST:PORT of a running one, whose workers must see the same paths."
            ),
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help=("Processes of a local scheduler; by default one per CPU."))
    ] = None,
    window: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Read the trace in windows of this length; by default only if it would not fit into memory.",
        ),
    ] = None,
) -> None:
    """Analyse a trace, or many.

    For one trace, shows nodes, topics, callbacks, executors, the project's paths, and goals with T1 to T5. Joint states
    and control cycles are compared with the project's control_rate_hz. For several traces, or a folder of several,
    shows goals and metrics of each, and of all complete ones together.

    With --against, shows nodes, topics and callbacks that are new or gone, and times and rates that differ
    significantly. Several traces, or a folder of several, are runs of a version: ldos analyze A1 A2 --against B1 B2.
    From five runs of each on, whole runs are compared; with fewer, the variation between starts is unknown.

    Exit code: 11 if one of several could not be read.
    """
    settings = sources_here().toml
    usual = Interfaces.of(settings.stack)
    request = Request(
        nominal_period_ns=nominal_period_ns(settings.stack.control_rate_hz),
        interfaces=parse_interfaces(interface or (), usual),
        usual=usual,
        paths=tuple(settings.paths),
        own=None if metrics is None else OwnSource(metrics, str(Path.cwd())),
        declared=in_traces(settings.metrics),
        on_corrupt=on_corrupt.value,
    )
    own = load_metrics(metrics)
    catalogue_of(own, request.declared)  # refuses names that are taken before reading
    together = together or bool(clock_offset)
    if not against:
        found = find_traces(traces, together=together)
        if len(found) > 1 or len(traces) > 1 or scheduler is not None or workers is not None:
            report, remedy = _is_report(output), "name that trace alone, without --scheduler and --workers"
            asked = {"--pid": pid, "--clock-offset": clock_offset, "--window": window, f"--output {output}": report}
            for option, given in asked.items():
                if given:
                    raise ConfigurationError(f"{option} belongs to one trace", remedy=remedy)
            analyze_many(found, request, scheduler=scheduler, workers=workers, output=output, force=force, whole=whole)
            return
    _require_output(output, against, force=force)
    drawn = output is not None and output.suffix == ".html"
    read = partial(
        _analyze_one,
        request=request,
        own=own,
        clock_offsets=clock_offset or (),
        drawn=drawn,
        window_s=window,
    )
    if against:
        heads, bases = find_runs(traces, against, together=together)
        if pid and len(heads) > 1:
            raise ConfigurationError("--pid belongs to one trace", remedy="name that trace alone")
        of_heads, of_bases, notes = see_runs(
            heads, bases, lambda each: read(each, pids=pid if each in heads else None), drawn=drawn
        )
        _emit(partial(render_against, of_bases, of_heads), output, whole=whole)
    else:
        analysis, notes = read(traces[0], pids=pid)
        _emit(partial(render_analysis, analysis), output, whole=whole)
        if output is not None and not _is_report(output):
            with writing(output, otherwise=ANOTHER_OUTPUT):
                write_parquet(analysis.flow.model, output)
            say(f"tables: {output}")
    for note in notes:
        say(note)


def _analyze_one(
    trace: Path,
    *,
    request: Request,
    own: Sequence[OwnMetric],
    pids: Sequence[int] | None,
    clock_offsets: Sequence[str],
    drawn: bool,
    window_s: float | None,
) -> tuple[Analysis, list[str]]:
    with step_bar() as step:
        step("reading the trace", 0, 1)
        observed = read_observed(trace, pids, on_corrupt=request.on_corrupt, window_s=window_s)
        step("finding the flow of messages", 0, 1)
        offsets, notes = find_clock_offsets(observed, clock_offsets)
        model = shift_clocks(observed, offsets) if offsets else observed
        require_action(model, request.interfaces, request.usual)
        flow = build_flow(model, request.paths)
        names = own_events(request.declared)
        own_trace = read_trace(trace, events=names, on_corrupt=request.on_corrupt) if names else None
        goals = extract_metrics(
            model,
            nominal_period_ns=request.nominal_period_ns,
            interfaces=request.interfaces,
            own=own,
            declared=request.declared,
            flow=flow,
            events=None if own_trace is None else OwnEvents(own_trace, names, pids=pids, offsets_ns=offsets),
        )
        scheduling = read_trace(trace, events=SCHEDULING_EVENTS, on_corrupt=request.on_corrupt) if drawn else None
        analysis = Analysis(
            name=trace.resolve().name,
            flow=flow,
            paths=request.paths,
            goals=goals,
            metrics=tuple(catalogue_of(own, request.declared).values()),
            thread_states=None if scheduling is None else build_thread_states(scheduling),
        )
    return analysis, notes


def _emit(show: Callable[..., Rendered], output: Path | None, *, whole: bool) -> None:
    emit_fitted(show, whole=whole)
    if output is not None and _is_report(output):
        emit_text(show(format_of(output)), output)


def _is_report(output: Path | None) -> bool:
    """True for a report's file name; other names are folders of tables."""
    return output is not None and output.suffix in _REPORTS


def _require_output(output: Path | None, against: Sequence[Path] | None, *, force: bool) -> None:
    if output is None:
        return
    if not _is_report(output):
        if against:
            raise ConfigurationError("a comparison has no tables of a model", remedy="--output NAME.html, .md or .json")
        refuse_existing(output, is_model_directory, force=force)
        return
    require_format(format_of(output))
    require_writable_file(output)
