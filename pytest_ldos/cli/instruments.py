"""``ldos latency | cpu-cost | tracing-cost | topology``: instruments that measure the middleware."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.files import field_types, require_writable_file, require_writable_folder
from pytest_ldos.campaign.instruments import find_instrument
from pytest_ldos.campaign.watching import measure_watched, to_trials
from pytest_ldos.cli.main import parameters_of, show_parameters
from pytest_ldos.cli.measuring import MeasuringProgress, measuring
from pytest_ldos.cli.say import FormatOption, OutputOption, choose_format, emit_fitted, say, write_text
from pytest_ldos.instruments.cpu_cost.ladder import CpuCostSpec
from pytest_ldos.instruments.latency.spec import LatencySpec
from pytest_ldos.instruments.study import Instrument, Study
from pytest_ldos.instruments.topology.run import TopologySpec
from pytest_ldos.instruments.tracing_cost.spec import TracingCostSpec
from pytest_ldos.measure.trial.codec import encode_trials
from pytest_ldos.scenario.fields import described_fields
from pytest_ldos.scenario.model import WatchSpec
from pytest_ldos.scenario.words import DEFAULT_RATE_HZ, ProfilerKind
from pytest_ldos.show.export.parquet import write_study_tables
from pytest_ldos.show.page.formats import Format
from pytest_ldos.show.report.flame import DRAWINGS
from pytest_ldos.show.report.study import render_study_as


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Requested outputs of a study, and how to watch its processes.

    Attributes:
        output: a file; ``None`` to print.
        watched: folder for profiles and logs; ``None`` without them.
    """

    kind: Format
    output: Path | None
    parquet: Path | None
    record: Path | None
    watch: WatchSpec
    watched: Path | None

    @classmethod
    def of(
        cls,
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
    ) -> Outputs:
        """Refuses, before measuring, outputs that could not be written; the parameters are options."""
        folders = {each for each in (profile, syscalls) if each is not None}
        if len(folders) > 1:
            raise ConfigurationError("--profile and --syscalls name two folders", remedy="name the same for both")
        for file in (output, record):
            if file is not None:
                require_writable_file(file)
        if parquet is not None:
            require_writable_folder(parquet)
        return cls(
            kind=choose_format(output_format, output),
            output=output,
            parquet=parquet,
            record=record,
            watch=WatchSpec(
                profile=profile is not None, profiler=profiler, rate_hz=profile_rate, syscalls=syscalls is not None
            ),
            watched=next(iter(folders), None),
        )


def run_instrument(instrument: Instrument, spec: object, outputs: Outputs) -> Study:
    """Measures while holding the machine, and outputs the result; an empty study ends with 11."""
    progress = MeasuringProgress(1, name=instrument.name)
    measure = partial(instrument.measure, spec, progress)
    with measuring(kept="nothing is kept"):
        instrument.available(spec).demand("cannot measure: ")
        with progress.shown():
            if outputs.watched is None:
                study = measure()
            else:
                study = measure_watched(outputs.watch, outputs.watched, DRAWINGS, measure)
        emit_fitted(render_study_as, study, outputs.kind, output=outputs.output)
        for file in () if outputs.parquet is None else write_study_tables(study, outputs.parquet):
            say(f"table: {file}", err=True)
        if outputs.record is not None:
            write_text(encode_trials(to_trials(study)), outputs.record, what="rounds", err=True)
    if study.rounds and all(each.failure for each in study.rounds):
        raise typer.Exit(exit_codes.INVALID)
    return study


Spec = TypeVar("Spec")


def takes_settings(kind: type[Spec]) -> Callable[[Callable[[Spec, Outputs], None]], Callable[..., None]]:
    """Makes a command from a function of a spec and outputs: the fields of the spec are options.

    In the spec, paths are texts, and ``""`` is none.
    """
    paths = {name for name, text in described_fields(kind).items() if text.is_path}

    def decorate(command: Callable[[Spec, Outputs], None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            outputs = Outputs.of(**{name: given.pop(name) for name in inspect.signature(Outputs.of).parameters})
            spec = kind(**{name: str(value or "") if name in paths else value for name, value in given.items()})
            command(spec, outputs)

        show_parameters(run, [*_settings(kind), *parameters_of(Outputs.of)])
        return run

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
def cpu_cost(spec: CpuCostSpec, outputs: Outputs) -> None:
    """Measure the CPU time of a message, layer by layer.

    Includes context switches.

    The same traffic is exchanged as plain calls, over DDS only, in one node, in many nodes, and in many with a
    participant each; nodes that publish nothing are measured as well. Every rung is a separate process, and rungs are
    interleaved.

    Exit code: 0 there are results, 11 it could not be measured, 130 interrupted.
    """
    run_instrument(find_instrument("cpu_cost"), spec, outputs)


@takes_settings(LatencySpec)
def latency(spec: LatencySpec, outputs: Outputs) -> None:
    """Measure DDS latencies of a message and its answer.

    Round-trip and one-way times of every size, reliability and transport, interleaved with Cyclone DDS's ddsperf if it
    is installed, and with rclcpp over each middleware if ROS 2 is sourced. Lost messages and failed discovery are
    results.

    Exit code: 0, or 11 if no round gave a number.
    """
    run_instrument(find_instrument("latency"), spec, outputs)


@takes_settings(TopologySpec)
def topology(spec: TopologySpec, outputs: Outputs) -> None:
    """Run the nodes of a topology file, and count late messages.

    Messages are late above the lesser of 20 % of their period and 5 ms, too late above the lesser of their period and
    50 ms, and lost if their number is skipped.

    Exit code: 0 it was measured, and any target was met; 10 the target was missed; 11 it could not be measured
    completely; 2 a file is invalid; 130 interrupted.
    """
    from pytest_ldos.instruments.topology.instrument import read_asked  # noqa: PLC0415 - of this instrument alone

    read_asked(spec)  # refuses an invalid file before waiting for the machine
    study = run_instrument(find_instrument("topology"), spec, outputs)
    if any(each.failure for each in study.rounds):
        raise typer.Exit(exit_codes.INVALID)
    if study.missed:
        say(f"ldos: the target was missed: {', '.join(study.missed)}", err=True)
        raise typer.Exit(exit_codes.REGRESSED)


@takes_settings(TracingCostSpec)
def tracing_cost(spec: TracingCostSpec, outputs: Outputs) -> None:
    """Measure the overhead of tracing.

    The time from publication to callback with and without it, and nanoseconds per tracepoint.

    New processes run without tracing, under LTTng and under eBPF, interleaved; overheads are means over rounds, with
    intervals.

    Exit code: 0 there are results, 11 it could not be measured, 130 interrupted.
    """
    run_instrument(find_instrument("tracing_cost"), spec, outputs)
