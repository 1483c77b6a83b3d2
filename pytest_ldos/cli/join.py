"""``ldos join STACK=RESULT.json …``: results of several stacks in one report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.cli.output import choose_format, put_out
from pytest_ldos.show.report.compose import compose, compose_infra
from pytest_ldos.show.report.document import Section
from pytest_ldos.show.report.reading import read_document

_EVERY_SCENARIO: Final = "every scenario"
_NO_RESULT: Final = "its measurement ended without a result: see the job's log"


def join(
    results: Annotated[
        list[str],
        typer.Argument(metavar="STACK=RESULT…", help="Reports in JSON; a stack whose file is missing is infra."),
    ],
    output: Annotated[
        list[Path] | None,
        typer.Option("--output", help="File to write instead of printing; several times for several."),
    ] = None,
) -> None:
    """Join the results of several stacks into one report.

    Its verdict is the worst of all.

    Exit code: 0 also where something regressed; 2 where a file is no report.
    """
    document = compose([section for each in results for section in _sections(each)])
    if not output:
        put_out(document, choose_format(None, None), None)
    for file in output or ():
        put_out(document, choose_format(None, file), file)


def _sections(given: str) -> Iterator[Section]:
    stack, sign, file = given.partition("=")
    if not (stack and sign and file):
        raise ConfigurationError(f"{given!r} names no stack with its result", remedy="as in ros2=results/result.json")
    if Path(file).exists():
        yield from read_document(Path(file)).sections
    else:
        yield compose_infra(_EVERY_SCENARIO, [_NO_RESULT], stack=stack)
