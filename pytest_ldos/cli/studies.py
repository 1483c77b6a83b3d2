"""Shared parts of the instruments' commands: their options, and profilers."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError, Unavailable
from pytest_ldos.base.plain import field_types
from pytest_ldos.base.text import Rendered
from pytest_ldos.base.writable import require_writable_file, require_writable_folder
from pytest_ldos.campaign.studies import measure_watched, to_trials
from pytest_ldos.cli.help import parameters_of, show_parameters
from pytest_ldos.cli.measuring import measuring
from pytest_ldos.cli.paths import terminal
from pytest_ldos.cli.progress import MeasuringProgress
from pytest_ldos.cli.say import FormatOption, OutputOption, choose_format, emit_text, say, write_text
from pytest_ldos.instruments.instrument import Instrument
from pytest_ldos.instruments.study import Study
from pytest_ldos.measure.trial.codec import encode_trials
from pytest_ldos.scenario.described import Described, described_fields
from pytest_ldos.scenario.watching import WatchSpec
from pytest_ldos.scenario.words import DEFAULT_RATE_HZ, ProfilerKind
from pytest_ldos.show.export.parquet import write_study_tables
from pytest_ldos.show.page.formats import Format
from pytest_ldos.show.report.flame.files import DRAWINGS
from pytest_ldos.show.report.study.page import render_study_as

_NOWHERE: Final = Path()


@dataclass(frozen=True)
class WatchRequest:
    """Requested observers.

    Attributes:
        folder: for profiles and logs.
    """

    spec: WatchSpec
    folder: Path


_ASKED: ContextVar[WatchRequest | None] = ContextVar("watch", default=None)


def asked_watch() -> WatchRequest | None:
    """The request of the running command; ``None`` if there is none."""
    return _ASKED.get()


def _options(
    *,
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
) -> WatchRequest | None:
    """See `with_watch_options`; the parameters are the options.

    Raises:
        ConfigurationError: two folders.
    """
    folders = {each for each in (profile, syscalls) if each is not None}
    if len(folders) > 1:
        raise ConfigurationError("--profile and --syscalls name two folders", remedy="name the same for both")
    spec = WatchSpec(
        profile=profile is not None, profiler=profiler, rate_hz=profile_rate, syscalls=syscalls is not None
    )
    return WatchRequest(spec, next(iter(folders), _NOWHERE)) if spec.is_asked else None


def with_watch_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command of an instrument with ``--profile``, ``--profiler``, ``--profile-rate`` and ``--syscalls``."""

    @wraps(command)
    def watched(**arguments: Any) -> None:
        mine = {name: arguments.pop(name) for name in _names()}
        token = _ASKED.set(_options(**mine))
        try:
            command(**arguments)
        finally:
            _ASKED.reset(token)

    show_parameters(watched, [*parameters_of(command), *parameters_of(_options)])
    return watched


def _names() -> list[str]:
    return list(inspect.signature(_options).parameters)


ParquetOption = Annotated[Path | None, typer.Option("--parquet", help="Folder to write all tables to, as Parquet.")]
RecordOption = Annotated[
    Path | None,
    typer.Option("--record", help="File for the rounds, to compare with others by ldos compare."),
]


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Requested outputs of a study.

    Attributes:
        output: file to write it to, in the format of its name; ``None`` prints it.
        parquet: folder for its tables.
        record: file for its rounds.
    """

    kind: Format
    output: Path | None
    parquet: Path | None = None
    record: Path | None = None

    @classmethod
    def of(cls, kind: Format | None, output: Path | None, parquet: Path | None, record: Path | None) -> Outputs:
        """Refuses, before measuring, outputs that could not be written.

        Raises:
            ConfigurationError: see `choose_format`, and `require_writable_file`.
        """
        for file in (output, record):
            if file is not None:
                require_writable_file(file)
        if parquet is not None:
            require_writable_folder(parquet)
        return cls(kind=choose_format(kind, output), output=output, parquet=parquet, record=record)


def run_instrument(instrument: Instrument, spec: object, outputs: Outputs) -> Study:
    """Measures while holding the machine, and outputs the result; an empty study ends with 11.

    Raises:
        typer.Exit: it could not be measured.
    """
    progress = MeasuringProgress(1, name=instrument.name)
    with measuring(kept="nothing is kept"):
        _refuse_unable(instrument, spec)
        with progress.shown():
            study = _measure(instrument, spec, progress)
        emit_study(study, outputs)
    if study.rounds and all(each.failure for each in study.rounds):
        raise typer.Exit(exit_codes.INVALID)
    return study


def _measure(instrument: Instrument, spec: object, progress: MeasuringProgress) -> Study:
    asked = asked_watch()
    if asked is None:
        return instrument.measure(spec, progress)
    return measure_watched(asked.spec, asked.folder, DRAWINGS, lambda: instrument.measure(spec, progress))


def _refuse_unable(instrument: Instrument, spec: object) -> None:
    able = instrument.available(spec)
    if not able.ok:
        raise Unavailable(f"cannot measure: {able.reason}", remedy=able.remedy)


def emit_study(study: Study, outputs: Outputs) -> None:
    """Prints or writes a study.

    Raises:
        ConfigurationError: a file cannot be written.
    """
    width, color = terminal()
    is_shown = outputs.output is None
    emit_text(_renderer(study, outputs.kind, width, color=color and is_shown), outputs.output)
    if outputs.parquet is not None:
        for file in write_study_tables(study, outputs.parquet):
            say(f"table: {file}", err=True)
    if outputs.record is not None:
        write_text(encode_trials(to_trials(study)), outputs.record)
        say(f"rounds: {outputs.record}", err=True)


def _renderer(study: Study, kind: Format, width: int, *, color: bool) -> Callable[[], Rendered]:
    return lambda: render_study_as(study, kind, width=width, color=color)


Spec = TypeVar("Spec")


def takes_settings(kind: type[Spec]) -> Callable[[Callable[[Spec, Outputs], None]], Callable[..., None]]:
    """Makes a command from a function of a spec and outputs; its options are the spec's fields and the outputs."""

    def decorate(command: Callable[[Spec, Outputs], None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            outputs = {name: given.pop(name) for name in inspect.signature(_outputs).parameters}
            spec = kind(**_plain(kind, given))
            command(spec, _outputs(**outputs))

        show_parameters(run, [*_settings(kind), *parameters_of(_outputs)])
        return run

    return decorate


def _outputs(
    *,
    output: OutputOption = None,
    output_format: FormatOption = None,
    parquet: ParquetOption = None,
    record: RecordOption = None,
) -> Outputs:
    """See `Outputs.of`; the parameters are the options."""
    return Outputs.of(output_format, output, parquet, record)


def _settings(kind: type) -> Iterator[inspect.Parameter]:
    types, texts = field_types(kind), described_fields(kind)
    for field in dataclasses.fields(kind):
        text = texts[field.name]
        yield inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(field, text),
            annotation=Annotated[Path | None if text.is_path else types[field.name], _info(text)],
        )


def _default(field: dataclasses.Field[Any], text: Described) -> Any:
    if text.is_path:
        return None
    if text.default is not None:
        return text.default
    return inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default


def _info(text: Described) -> Any:
    return typer.Argument(help=text.meaning) if text.is_argument else typer.Option(*text.flags, help=text.meaning)


def _plain(kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """The values as in the spec: paths as text, ``""`` for none."""
    paths = {name for name, text in described_fields(kind).items() if text.is_path}
    return {name: str(value or "") if name in paths else value for name, value in given.items()}
