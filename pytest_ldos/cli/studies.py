"""Shared parts of the commands of instruments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import Unavailable
from pytest_ldos.base.text import Rendered
from pytest_ldos.base.writable import require_writable_file, require_writable_folder
from pytest_ldos.campaign.study_trials import to_trials
from pytest_ldos.campaign.watched_study import measure_watched
from pytest_ldos.cli.measuring import measuring
from pytest_ldos.cli.output import choose_format, put_out_text, write_text
from pytest_ldos.cli.paths import terminal
from pytest_ldos.cli.progress import MeasuringProgress
from pytest_ldos.cli.say import say
from pytest_ldos.cli.watch_options import asked_watch
from pytest_ldos.instruments.instrument import Instrument
from pytest_ldos.instruments.study import Study
from pytest_ldos.measure.trial.codec import encode_trials
from pytest_ldos.show.export.study_tables import write_study_tables
from pytest_ldos.show.page.formats import Format
from pytest_ldos.show.report.flame.files import DRAWINGS
from pytest_ldos.show.report.study.page import render_study_as

ParquetOption = Annotated[Path | None, typer.Option("--parquet", help="Folder to write all tables to, as Parquet.")]
RecordOption = Annotated[
    Path | None,
    typer.Option("--record", help="File to keep the rounds in, for ldos compare with those of others."),
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
        """Refuses what could not be written before anything is measured.

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
    """Measures with the machine held, and puts out what was found; a study with nothing in it ends with 11.

    Raises:
        typer.Exit: it could not be measured.
    """
    progress = MeasuringProgress(1, name=instrument.name)
    with measuring(kept="nothing is kept"):
        _refuse_unable(instrument, spec)
        with progress.shown():
            study = _measure(instrument, spec, progress)
        put_out_study(study, outputs)
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


def put_out_study(study: Study, outputs: Outputs) -> None:
    """Prints or writes it.

    Raises:
        ConfigurationError: a file cannot be written.
    """
    width, color = terminal()
    is_shown = outputs.output is None
    put_out_text(_renderer(study, outputs.kind, width, color=color and is_shown), outputs.output)
    if outputs.parquet is not None:
        for file in write_study_tables(study, outputs.parquet):
            say(f"table: {file}", err=True)
    if outputs.record is not None:
        write_text(encode_trials(to_trials(study)), outputs.record)
        say(f"rounds: {outputs.record}", err=True)


def _renderer(study: Study, kind: Format, width: int, *, color: bool) -> Callable[[], Rendered]:
    return lambda: render_study_as(study, kind, width=width, color=color)
