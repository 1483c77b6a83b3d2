"""Input and output of the commands; only this module prints, and it escapes terminal control sequences."""

from __future__ import annotations

import codecs
import errno
import io
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from pytest_ldos.base.errors import ConfigurationError, LdosError
from pytest_ldos.base.files import require_writable_file, unwritable, write_atomically
from pytest_ldos.base.text import Rendered, one_line
from pytest_ldos.judge.baseline.store import BaselineStores
from pytest_ldos.measure.trial.artifacts import RUNS, TRIALS_FILE, read_trials
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.scenario.options import find_settings_file
from pytest_ldos.scenario.settings import Sources, read_environment, read_sources
from pytest_ldos.show.page.formats import Format, format_of, require_format
from pytest_ldos.show.report.document import Document
from pytest_ldos.show.report.json_text import render_as

ANOTHER_OUTPUT = "name another path with --output"
LATEST = "latest"


def sources_here() -> Sources:
    """The settings of the working directory's project, whose folder is "." if it is the working directory."""
    found = find_settings_file(Path.cwd())
    if found is not None and found.parent == Path.cwd():
        found = Path(found.name)
    return read_sources(found, root=Path(), here=Path(), command_line={}, environment=read_environment(os.environ))


def stores_here() -> BaselineStores:
    return BaselineStores.of(sources_here())


def load_run(name: str) -> list[TrialSet]:
    return [read_trials(file) for file in find_trials(name)]


def find_trials(name: str) -> list[Path]:
    """The files of trials, at least one, of a run folder, a scenario folder, a file of trials, or ``latest``."""
    path = Path(name)
    if name == LATEST:
        folder = sources_here().folder("output") / RUNS
        if not (runs := sorted({file.parents[1] for file in folder.glob(f"*/*/{TRIALS_FILE}")})):
            raise ConfigurationError(f"there are no runs in {folder}", remedy="make one: pytest -m baseline")
        path = runs[-1]
    if path.is_file():
        return [path]
    found = [own] if (own := path / TRIALS_FILE).is_file() else sorted(path.glob(f"*/{TRIALS_FILE}"))
    if not found:
        raise ConfigurationError(
            f"{path} holds no trials", remedy=f"name a run folder (.ldos/runs/…), a file of trials, or '{LATEST}'"
        )
    return found


def metric_names(runs: Iterable[TrialSet]) -> set[str]:
    return {metric.name for trials in runs for metric in trials.metrics}


def parse_share(text: str, *, what: str) -> float:
    """``15%`` or ``0.15``; refuses what is not a positive number."""
    plain = text.strip()
    try:
        value = float(plain.removesuffix("%").strip()) / (100 if plain.endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise ConfigurationError(f"{what} is {text!r}", remedy="write it as 15% or 0.15")
    return value


def parse_duration_s(text: str, *, what: str) -> float:
    """``90s``, ``10min`` or ``1.5h``; a number alone is seconds."""
    if (match := re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h)?\s*", text)) is None:
        raise ConfigurationError(f"{what} is {text!r}", remedy="write it as 90s, 10min or 1h")
    return float(match[1]) * {"s": 1.0, "min": 60.0, "h": 3600.0}[match[2] or "s"]


def parse_confidence(text: str) -> float:
    confidence = parse_share(text, what="--confidence")
    if not 0.5 < confidence < 1:
        raise ConfigurationError(f"--confidence is {text!r}", remedy="it must be between 0.5 and 1, as 0.9 or 90%")
    return confidence


def allow_any_letter() -> None:
    """Makes the standard streams accept every character, even in an ASCII locale."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            is_ascii = codecs.lookup(stream.encoding).name == "ascii"
            stream.reconfigure(encoding="utf-8" if is_ascii else None, errors="backslashreplace")


def say(text: str, *, err: bool = False) -> None:
    """Prints a line, which may hold untrusted text."""
    with _printing():
        typer.echo(one_line(text), err=err)


def emit(text: Rendered) -> None:
    """Prints rendered text, which includes its line ends."""
    with _printing():
        typer.echo(text, nl=False, color=True)


def complain(error: LdosError) -> None:
    """Prints an error and its remedy, which are already escaped."""
    typer.echo(f"ldos: {error}", err=True)


def ask(question: str) -> bool:
    return typer.confirm(one_line(question))


@contextmanager
def _printing() -> Iterator[None]:
    """Converts a failed write to standard output, such as to a full disk, into `NotWritten` with the file's name."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EPIPE:  # the reader closed the pipe
            raise
        place = Path("/proc/self/fd/1").readlink()
        nowhere = os.open(os.devnull, os.O_WRONLY)  # or Python would write the rest again at exit
        os.dup2(nowhere, 1)
        os.close(nowhere)
        raise unwritable(place, error, otherwise="send the output elsewhere") from None


FormatOption = Annotated[
    Format | None, typer.Option("--format", help="Format; by default that of the file, or text for a terminal.")
]
OutputOption = Annotated[Path | None, typer.Option("--output", help="File to write instead of printing.")]


def choose_format(kind: Format | None, output: Path | None) -> Format:
    """The requested format, by name or by the file's; refuses unknown suffixes and missing libraries."""
    if kind is None:
        kind = Format.TERMINAL if output is None else format_of(output)
    require_format(kind)
    return kind


def emit_fitted(render: Callable[..., Rendered], *values: Any, output: Path | None = None, **options: Any) -> None:
    """Prints what `render` makes for this terminal, or writes it to a file without colours."""
    is_terminal = sys.stdout.isatty()
    width = os.get_terminal_size().columns if is_terminal else int(os.environ.get("COLUMNS", "100"))
    color = is_terminal and "NO_COLOR" not in os.environ and output is None
    emit_text(render(*values, width=width, color=color, **options), output)


def redraw(render: Callable[..., Rendered], drawn: int, lines: Sequence[str]) -> int:
    """Prints lines, then what `render` makes, which replaces `drawn` lines on a terminal; returns its number of lines.

    Without a terminal, `render` is asked for one line, and nothing is replaced.
    """
    is_terminal = sys.stdout.isatty()
    width, height = os.get_terminal_size() if is_terminal else (0, 0)
    most = max(2, height // 4 - 4) if is_terminal else 0
    text = render(most=most, width=width, color=is_terminal and "NO_COLOR" not in os.environ)
    shown = text.splitlines(keepends=True)[: height - 1 if is_terminal else None]
    above = f"\x1b[{drawn}F\x1b[J" if drawn else ""
    emit(Rendered("".join((above, *(f"{one_line(each)}\n" for each in lines), *shown))))
    return len(shown) if is_terminal else 0


def emit_document(document: Document, kind: Format, output: Path | None) -> None:
    if output is None:
        emit_fitted(render_as, document, kind)
    else:
        emit_text(render_as(document, kind), output)


def emit_text(text: Rendered, output: Path | None) -> None:
    if output is None:
        emit(text)
    else:
        write_text(text, output)


def write_text(text: str, output: Path, *, what: str = "report", err: bool = False) -> None:
    """Writes a file, and prints where it is; for errors see `require_writable_file`."""
    require_writable_file(output)
    write_atomically(output, text)
    say(f"{what}: {output}", err=err)
