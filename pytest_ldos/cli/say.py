"""Output of the commands: only here they print, and no text can be a command to a terminal or a log."""

from __future__ import annotations

import codecs
import io
import sys

import typer

from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.text import Rendered, one_line


def allow_any_letter() -> None:
    """Makes the terminal's streams take every letter, as in a locale that knows ASCII alone they do not."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            is_ascii = codecs.lookup(stream.encoding).name == "ascii"
            stream.reconfigure(encoding="utf-8" if is_ascii else None, errors="backslashreplace")


def say(text: str, *, err: bool = False) -> None:
    """Prints a line, whoever wrote the words in it."""
    typer.echo(one_line(text), err=err)


def emit(text: Rendered) -> None:
    """Prints what a renderer made, which ends its lines itself."""
    typer.echo(text, nl=False, color=True)


def complain(error: LdosError) -> None:
    """Prints what went wrong and what to do; other programs' words in it were made safe when it was made."""
    typer.echo(f"ldos: {error}", err=True)


def ask(question: str) -> bool:
    """The answer to a question, yes or no."""
    return typer.confirm(one_line(question))
