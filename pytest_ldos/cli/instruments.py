"""``ldos latency | cpu-cost | tracing-cost | topology``: instruments that measure the middleware."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError, Unavailable
from pytest_ldos.base.files import field_types, require_writable_file, require_writable_folder
from pytest_ldos.campaign.watching import measure_watched, to_trials
from pytest_ldos.cli.main import parameters_of, show_parameters
from pytest_ldos.cli.measuring import MeasuringProgress, measuring
from pytest_ldos.cli.say import FormatOption, OutputOption, choose_format, emit_fitted, say, write_text
from pytest_ldos.instruments import find_instrument
from pytest_ldos.instruments.cpu_cost.ladder import CpuCostSpec
from pytest_ldos.instruments.latency.spec import LatencySpec
from pytest_ldos.instruments.study import Instrument, Study
from pytest_ldos.instruments.topology.run import TopologySpec
from pytest_ldos.instruments.tracing_cost.spec import TracingCostSpec
from pytest_ldos.measure.trial.artifacts import encode_trials
from pytest_ldos.scenario.fields import described_fields
from pytest_ldos.scenario.model import WatchSpec
from pytest_ldos.scenario.words import DEFAULT_RATE_HZ, ProfilerKind
from pytest_ldos.show.export.parquet import write_study_tables
from pytest_ldos.show.report.flame import DRAWINGS
from pytest_ldos.show.report.study import render_study_as


def run_instrument(  # noqa: PLR0913 - one a command-line option
    instrument: Instrument,
    spec: object,
    *,
    output: OutputOption = None,
    output_format: FormatOption = None,
    parquet: Annotated[
        Path | None, typer.Option("--parquet", help="Folder to write all tables to, as Parquet.")
    ] = None,
    record: Annotated[
        Path | None, typer.Option("--record", help="File for the rounds, to compare with others by ldos compare.")
    ] = None,
    profile: Annotated[
        Path | None,
        typer.Option(
            "--profile", metavar="DIR", help="Profile the processes; folder for flame graph and speedscope file."
        ),
    ] = None,
    profiler: Annotated[
        ProfilerKind, typer.Option("--profiler", help="Profiler; auto is perf if permitted, else py-spy.")
    ] = ProfilerKind.AUTO,
    profile_rate: Annotated[
        int, typer.Option("--profile-rate", help="Samples per second of each CPU.")
    ] = DEFAULT_RATE_HZ,
    syscalls: Annotated[
        Path | None,
        typer.Option(
            "--syscalls", metavar="DIR", help="Count system calls (distorts all times); folder for the table."
        ),
    ] = None,
) -> Study:
    """Measures while holding the machine, and outputs the result; an empty study ends with 11.

    Refuses, before measuring, outputs that could not be written. The keyword arguments are options of each command.
    """
    watched = {each for each in (profile, syscalls) if each is not None}
    if len(watched) > 1:
        raise ConfigurationError("--profile and --syscalls name two folders", remedy="name the same for both")
    watch = WatchSpec(
        profile=profile is not None, profiler=profiler, rate_hz=profile_rate, syscalls=syscalls is not None
    )
    for file in (output, record):
        if file is not None:
            require_writable_file(file)
    if parquet is not None:
        require_writable_folder(parquet)
    kind = choose_format(output_format, output)
    progress = MeasuringProgress(1, name=instrument.name)
    measure = partial(instrument.measure, spec, progress)
    with measuring(kept="nothing is kept"):
        able = instrument.available(spec)
        if not able.ok:
            raise Unavailable(f"cannot measure: {able.reason}", remedy=able.remedy)
        with progress.shown():
            study = measure_watched(watch, watched.pop(), DRAWINGS, measure) if watched else measure()
        emit_fitted(render_study_as, study, kind, output=output)
        for file in () if parquet is None else write_study_tables(study, parquet):
            say(f"table: {file}", err=True)
        if record is not None:
            write_text(encode_trials(to_trials(study)), record, what="rounds", err=True)
    if study.rounds and all(each.failure for each in study.rounds):
        raise typer.Exit(exit_codes.INVALID)
    return study


Spec = TypeVar("Spec")
Run = Callable[[Instrument, object], Study]
"""`run_instrument` with the options of a command."""


def takes_settings(kind: type[Spec]) -> Callable[[Callable[[Spec, Run], None]], Callable[..., None]]:
    """Makes a command from a function of a spec and `Run`: the fields of the spec are options.

    In the spec, paths are texts, and ``""`` is none.
    """
    paths = {name for name, text in described_fields(kind).items() if text.is_path}
    outputs = parameters_of(run_instrument)[2:]

    def decorate(command: Callable[[Spec, Run], None]) -> Callable[..., None]:
        @wraps(command)
        def with_settings(**given: Any) -> None:
            run = partial(run_instrument, **{each.name: given.pop(each.name) for each in outputs})
            command(kind(**{name: str(value or "") if name in paths else value for name, value in given.items()}), run)

        show_parameters(with_settings, [*_settings(kind), *outputs])
        return with_settings

    return decorate


def _settings(kind: type) -> Iterator[inspect.Parameter]:
    types, texts = field_types(kind), described_fields(kind)
    for field in dataclasses.fields(kind):
        text = texts[field.name]
        default: Any = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
        if text.is_path:
            default = None
        elif text.default is not None:
            default = text.default
        info: Any = typer.Option(*text.flags, help=text.meaning)
        if text.is_argument:
            info = typer.Argument(help=text.meaning)
        yield inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[Path | None if text.is_path else types[field.name], info],
        )


@takes_settings(CpuCostSpec)
def cpu_cost(spec: CpuCostSpec, run: Run) -> None:
    """Measure the CPU time of a message, layer by layer.

    Includes context switches.

    The same traffic is exchanged as plain calls, over DDS only, in one node, in many nodes, and in many with a
    participant each; nodes that publish nothing are measured as well. Every rung is a separate process, and rungs are
    interleaved.

    Exit code: 0 there are results, 11 it could not be measured, 130 interrupted.
    """
    run(find_instrument("cpu_cost"), spec)


@takes_settings(LatencySpec)
def latency(spec: LatencySpec, run: Run) -> None:
    """Measure DDS latencies of a message and its answer.

    Round-trip and one-way times of every size, reliability and transport, interleaved with Cyclone DDS's ddsperf if it
    is installed, and with rclcpp over each middleware if ROS 2 is sourced. Lost messages and failed discovery are
    results.

    Exit code: 0, or 11 if no round gave a number.
    """
    run(find_instrument("latency"), spec)


@takes_settings(TopologySpec)
def topology(spec: TopologySpec, run: Run) -> None:
    """Run the nodes of a topology file, and count late messages.

    Messages are late above the lesser of 20 % of their period and 5 ms, too late above the lesser of their period and
    50 ms, and lost if their number is skipped.

    Exit code: 0 it was measured, and any target was met; 10 the target was missed; 11 it could not be measured
    completely; 2 a file is invalid; 130 interrupted.
    """
    from pytest_ldos.instruments.topology.instrument import read_asked  # noqa: PLC0415 - of this instrument alone

    read_asked(spec)  # refuses an invalid file before waiting for the machine
    study = run(find_instrument("topology"), spec)
    if any(each.failure for each in study.rounds):
        raise typer.Exit(exit_codes.INVALID)
    if study.missed:
        say(f"ldos: the target was missed: {', '.join(study.missed)}", err=True)
        raise typer.Exit(exit_codes.REGRESSED)


@takes_settings(TracingCostSpec)
def tracing_cost(spec: TracingCostSpec, run: Run) -> None:
    """Measure the overhead of tracing.

    The time from publication to callback with and without it, and nanoseconds per tracepoint.

    New processes run without tracing, under LTTng and under eBPF, interleaved; overheads are means over rounds, with
    intervals.

    Exit code: 0 there are results, 11 it could not be measured, 130 interrupted.
    """
    run(find_instrument("tracing_cost"), spec)
