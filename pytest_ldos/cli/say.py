"""Output of the commands; only this module prints, and it escapes terminal control sequences."""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.text import Rendered, one_line
from pytest_ldos.base.writable import require_writable_file, unwritable, write_atomically
from pytest_ldos.cli.paths import terminal
from pytest_ldos.show.page.formats import Format, format_of, require_format
from pytest_ldos.show.report.document import Document
from pytest_ldos.show.report.formats import render_as

_OUT: Final = 1
"""Descriptor of standard output."""


def allow_any_letter() -> None:
    """Makes the standard streams accept every character, even in an ASCII locale."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            is_ascii = codecs.lookup(stream.encoding).name == "ascii"
            stream.reconfigure(encoding="utf-8" if is_ascii else None, errors="backslashreplace")


def say(text: str, *, err: bool = False) -> None:
    """Prints a line of untrusted text."""
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
    """Asks a question; True for yes."""
    return typer.confirm(one_line(question))


@contextmanager
def _printing() -> Iterator[None]:
    """Converts a failed write to standard output into an error with the file's name.

    Raises:
        NotWritten: its disk is full or failing.
    """
    try:
        yield
    except OSError as error:
        if error.errno == errno.EPIPE:  # the reader closed the pipe
            raise
        place = Path(f"/proc/self/fd/{_OUT}").readlink()
        _forget_output()
        raise unwritable(place, error, otherwise="send the output elsewhere") from None


def _forget_output() -> None:
    """Discards unwritten output, which Python would otherwise try to write again at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _OUT)
    os.close(nowhere)


FormatOption = Annotated[
    Format | None, typer.Option("--format", help="Format; by default that of the file, or text for a terminal.")
]
OutputOption = Annotated[Path | None, typer.Option("--output", help="File to write instead of printing.")]


def choose_format(kind: Format | None, output: Path | None) -> Format:
    """The requested format, by name or by the file's.

    Raises:
        ConfigurationError: the file has an unknown suffix.
        Unavailable: the format's library is not installed.
    """
    if kind is None:
        kind = Format.TERMINAL if output is None else format_of(output)
    require_format(kind)
    return kind


def emit_document(document: Document, kind: Format, output: Path | None) -> None:
    """Prints or writes a report.

    Raises:
        NotWritten, ConfigurationError: the file cannot be written.
    """
    width, color = terminal()
    if output is None:
        emit_text(lambda: render_as(document, kind, width=width, color=color), None)
    else:
        emit_text(lambda: render_as(document, kind), output)


def emit_text(render: Callable[[], Rendered], output: Path | None) -> None:
    """Prints or writes rendered text.

    Raises:
        NotWritten, ConfigurationError: the file cannot be written.
    """
    if output is None:
        emit(render())
        return
    write_text(render(), output)
    say(f"report: {output}")


def write_text(text: str, output: Path) -> None:
    """Writes a report.

    Raises:
        NotWritten, ConfigurationError: the file cannot be written.
    """
    require_writable_file(output)
    write_atomically(output, text)
