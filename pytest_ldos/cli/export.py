"""``ldos export TRACE`` for other tools, and ``ldos profile show | diff`` of the processes' CPU time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.writable import writing
from pytest_ldos.cli.help import Command, Group
from pytest_ldos.cli.model import Damage, OnCorrupt, Pids, Together, TraceDirectory, build_observed, naming_option
from pytest_ldos.cli.paths import ANOTHER_OUTPUT
from pytest_ldos.cli.progress import Steps, step_bar
from pytest_ldos.cli.say import emit, say, write_text
from pytest_ldos.fleet.find import find_traces
from pytest_ldos.record.profiles import (
    Difference,
    FoldedStacks,
    compare_profiles,
    merge,
    read_folded,
    render_folded,
    render_speedscope,
)
from pytest_ldos.show.export.parquet import is_model_directory, staging_folder, write_parquet
from pytest_ldos.show.export.perfetto.write import write_perfetto
from pytest_ldos.show.report.flame.files import (
    SVG,
    describe_changes,
    describe_noise,
    render_flame,
    render_flame_difference,
    render_profile,
)
from pytest_ldos.trace.ctf.read import DecodedTrace, read_trace
from pytest_ldos.trace.ctf.stats import describe_losses
from pytest_ldos.trace.execution.build import NEEDED_EVENTS
from pytest_ldos.trace.execution.coverage import describe_missing
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.scheduling import SCHEDULING_EVENTS, build_thread_states
from pytest_ldos.trace.flow.build import build_flow


class Format(StrEnum):
    """Format of an exported trace."""

    PERFETTO = "perfetto"
    PARQUET = "parquet"


_PACKET_TAG: Final = b"\n"
_SUFFIXES: Final = {Format.PERFETTO: ".pftrace", Format.PARQUET: ".tables"}


def export(
    trace: TraceDirectory,
    *,
    to: Annotated[Format, typer.Option(help="perfetto: a file for Perfetto's UI; parquet: a directory of tables.")],
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
    _require_one(trace, together=together)
    target = output or Path(trace.resolve().name + _SUFFIXES[to])
    refuse_existing(target, to, force=force)
    with step_bar() as show:
        show("reading", 0, 1)
        with naming_option():
            decoded = read_trace(trace, events=NEEDED_EVENTS | SCHEDULING_EVENTS, on_corrupt=on_corrupt.value)
        show("building the model", 0, 1)
        model = build_observed(decoded, pid)
        with writing(target, otherwise=ANOTHER_OUTPUT):
            _WRITERS[to](decoded, model, target, show)
    _report(decoded, model, target, to)


def _require_one(trace: Path, *, together: bool) -> None:
    """Refuses a folder of several traces."""
    found = find_traces([trace], together=together)
    if len(found) > 1:
        names = ", ".join(each.name for each in found[:2])
        message = f"{trace} holds {len(found)} traces, the first of which are {names}"
        raise ConfigurationError(message, remedy="name one of them, or export them as one trace: --together")


def refuse_existing(target: Path, to: Format, *, force: bool) -> None:
    """Raises `ConfigurationError` for an existing target, unless it may be replaced."""
    if not target.exists() and not target.is_symlink():
        return
    ours = _is_perfetto(target) if to is Format.PERFETTO else is_model_directory(target)
    if not ours:
        raise ConfigurationError(
            f"{target} exists and is not an output of this export", remedy="name another path with --output"
        )
    if not force:
        raise ConfigurationError(f"{target} exists", remedy="name another path with --output, or replace it: --force")


def _is_perfetto(target: Path) -> bool:
    """True if a file begins with the tag of a Perfetto packet."""
    if not target.is_file():
        return False
    with target.open("rb") as file:
        return file.read(1) in {b"", _PACKET_TAG}


def _write_perfetto(decoded: DecodedTrace, model: ExecutionModel, target: Path, show: Steps) -> None:
    show("linking messages", 0, 1)
    flow, states = build_flow(model), build_thread_states(decoded)
    with _whole_file(target) as path, path.open("wb") as file:
        write_perfetto(
            model, file, flow=flow, thread_states=states, progress=lambda done, all_: show("writing", done, all_)
        )


def _write_parquet(decoded: DecodedTrace, model: ExecutionModel, target: Path, show: Steps) -> None:
    show("writing", 0, 1)
    write_parquet(model, target)


_WRITERS: Final = {Format.PERFETTO: _write_perfetto, Format.PARQUET: _write_parquet}


@contextmanager
def _whole_file(target: Path) -> Iterator[Path]:
    """A file that replaces the target when it is complete, or is discarded."""
    with staging_folder(target) as folder:
        path = folder / target.name
        yield path
        path.replace(target)


def _report(decoded: DecodedTrace, model: ExecutionModel, target: Path, to: Format) -> None:
    """Prints a line on the written file, and lines on defects of the trace."""
    counts = f"{len(model.callback_runs)} callback runs, {len(model.publications)} publications"
    say(f"wrote {target}: {counts}, {len(model.takes)} receptions ({_size(target)})")
    if to is Format.PERFETTO:
        say("open it in Perfetto's UI (Open trace file)")
    for each in model.missing_events:
        say(describe_missing(each, model.processes), err=True)
    if not len(model.callback_runs) + len(model.publications) + len(model.takes):
        say("the trace has no callback run, publication or reception of the chosen processes", err=True)
    unknown = ", ".join(f"{count} {table}" for table, count in model.unknown.items())
    if unknown:
        say(f"without a name, as tracing began after they were made: {unknown}", err=True)
    lost = describe_losses(decoded.stats.losses)
    if lost:
        say(f"the trace is incomplete: {lost}; callbacks without an end are drawn up to the next one", err=True)


def _size(target: Path) -> str:
    files = [target] if target.is_file() else list(target.iterdir())
    size = sum(file.stat().st_size for file in files)
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.1f} kB"


profile_app = typer.Typer(
    cls=Group,
    help="Show the processes' CPU time by function, and its changes.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_JSON: Final = ".json"
_FOLDED: Final = ".folded"
_ENDINGS: Final = (SVG, _JSON, _FOLDED)
_WHERE: Final = "A .folded file, or a folder of them: one a start of that version."

Profile = Annotated[Path, typer.Argument(help=_WHERE)]


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
    found = merge(_parts(profile))
    if output is None:
        emit(render_profile(found, top))
        return
    write_text(_render(found, profile, output), output)
    say(f"profile: {output}")


@profile_app.command(cls=Command)
def diff(
    base: Profile,
    head: Profile,
    output: Annotated[Path | None, typer.Option(help="File for the differential flame graph: .svg.")] = None,
) -> None:
    """Compare the shares of functions in two profiles.

    Only significant changes are listed.
    """
    if output is not None and output.suffix != SVG:
        raise ConfigurationError(f"{output} is not a drawing", remedy=f"let it end with {SVG}")
    difference = compare_profiles(_parts(base), _parts(head))
    for line in (*describe_noise(difference), *describe_changes(difference)):
        say(line)
    if output is not None:
        write_text(_draw_difference(difference, base, head), output)
        say(f"profile: {output}")


def _draw_difference(difference: Difference, base: Path, head: Path) -> str:
    return render_flame_difference(difference, f"{base} → {head}")


def _parts(place: Path) -> list[FoldedStacks]:
    """A profile for each start.

    Raises:
        ConfigurationError: a folder without profiles.
        RecordUnreadable: see `read_folded`.
    """
    if not place.is_dir():
        return [read_folded(place)]
    files = sorted(place.glob(f"*{_FOLDED}"))
    if not files:
        raise ConfigurationError(f"{place} holds no profiles", remedy=f"name a folder with {_FOLDED} files")
    return [read_folded(file) for file in files]


def _render(profile: FoldedStacks, source: Path, output: Path) -> str:
    if output.suffix == SVG:
        return render_flame(profile, str(source))
    if output.suffix == _JSON:
        return render_speedscope(profile, str(source))
    if output.suffix == _FOLDED:
        return render_folded(profile)
    raise ConfigurationError(f"{output} has no format of a profile", remedy=f"let it end with {', '.join(_ENDINGS)}")
