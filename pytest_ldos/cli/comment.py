"""``ldos comment RESULT.json`` and ``ldos annotate RESULT.json``: what a workflow tells people about a result.

The result comes from another machine. It is checked whole before anything of it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from pytest_ldos.cli.output import put_out_text
from pytest_ldos.report import markdown, workflow_commands
from pytest_ldos.report.reading import read_document

ResultArgument = Annotated[Path, typer.Argument(help="A report in JSON, as --ldos-report RESULT.json writes it.")]


def comment(
    result: ResultArgument,
    page_url: Annotated[str, typer.Option(help="Where the report's page can be downloaded.")] = "",
    trace_url: Annotated[str, typer.Option(help="Where traces for Perfetto can be downloaded.")] = "",
    run_url: Annotated[str, typer.Option(help="The page of the run that measured.")] = "",
    output: Annotated[Path | None, typer.Option("--output", help="File to write instead of printing.")] = None,
) -> None:
    """Render a result in Markdown, for a comment on a pull request or a job summary.

    Exit code: 0 also where something regressed; 2 where the file is no report.
    """
    document = read_document(result)
    links = tuple(_links(page_url, trace_url, run_url))
    put_out_text(lambda: markdown.render(document, links=links), output)


def _links(page_url: str, trace_url: str, run_url: str) -> Iterator[markdown.Link]:
    """Those that were given, in the order of their use."""
    named = (("full report", page_url), ("traces, for Perfetto", trace_url), ("the run", run_url))
    yield from (markdown.Link(title, url) for title, url in named if url)


def annotate(result: ResultArgument) -> None:
    """Print a result as annotations of a GitHub workflow, on the tests of scenarios that need a look.

    Exit code: 0 also where something regressed; 2 where the file is no report.
    """
    document = read_document(result)
    typer.echo(workflow_commands.render(document), nl=False)
