"""A report as the user wants it: on the terminal, or in a file of some format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from pytest_ldos.base.text import Rendered
from pytest_ldos.base.writable import require_writable_file, write_atomically
from pytest_ldos.cli.paths import terminal
from pytest_ldos.cli.say import emit, say
from pytest_ldos.show.page.formats import Format, format_of, require_format
from pytest_ldos.show.report.document import Document
from pytest_ldos.show.report.formats import render_as

FormatOption = Annotated[
    Format | None, typer.Option("--format", help="Format; by default that of the file, or for this terminal.")
]
OutputOption = Annotated[Path | None, typer.Option("--output", help="File to write instead of printing.")]


def choose_format(kind: Format | None, output: Path | None) -> Format:
    """The requested format, by name or by the file's.

    Raises:
        ConfigurationError: a file whose name asks for no format.
        Unavailable: the format's library is not installed.
    """
    if kind is None:
        kind = Format.TERMINAL if output is None else format_of(output)
    require_format(kind)
    return kind


def put_out(document: Document, kind: Format, output: Path | None) -> None:
    """Prints or writes a report.

    Raises:
        NotWritten, ConfigurationError: the file cannot be written.
    """
    width, color = terminal()
    if output is None:
        put_out_text(lambda: render_as(document, kind, width=width, color=color), None)
    else:
        put_out_text(lambda: render_as(document, kind), output)


def put_out_text(render: Callable[[], Rendered], output: Path | None) -> None:
    """Prints or writes what is rendered.

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
