"""The command ``ldos``, run in this process: what it printed, and how it ended."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache

import pytest
import typer
from typer.testing import CliRunner, Result

from pytest_ldos.cli.main import COMMANDS, make_app, run

app = make_app()


def run_ldos(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Anything but an exit, as an error without a name of its own, is raised here."""
    command = ["ldos", *map(str, arguments)]
    with pytest.MonkeyPatch.context() as patched, _captured() as (stdout, stderr):
        patched.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as ended:
            run()
    code = ended.value.code
    assert code is None or isinstance(code, int), code
    return subprocess.CompletedProcess(command, code or 0, _text(stdout), _text(stderr))


@contextmanager
def _captured() -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    stdout, stderr = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with redirect_stdout(stdout), redirect_stderr(stderr):
        yield stdout, stderr


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def invoke_ldos(*arguments: object) -> Result:
    """The command by typer's own runner; faults are raised, as `run` would report them."""
    return CliRunner().invoke(_app_of(str(arguments[0])), [*map(str, arguments)], catch_exceptions=False)


@cache
def _app_of(name: str) -> typer.Typer:
    """The app with one command; typer takes long to prepare all of them for each run."""
    return make_app([name]) if name in COMMANDS else app


def lines_of(text: str) -> list[str]:
    """Lines of a text, with single spaces."""
    return [" ".join(line.split()) for line in text.splitlines()]
