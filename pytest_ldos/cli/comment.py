"""``ldos comment RESULT.json …`` and ``ldos annotate RESULT.json …``: what a workflow tells people about results.

Results come from other machines. Each is checked whole before anything of it is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.text import Rendered, one_line
from pytest_ldos.cli.output import put_out_text
from pytest_ldos.cli.say import emit
from pytest_ldos.show.page.model import Link
from pytest_ldos.show.report import markdown, workflow_commands
from pytest_ldos.show.report.host_reports import HostReport, name_reports
from pytest_ldos.show.report.reading import read_document

_FOR_ONE: Final = "Several machines: CLASS=URL, once for each host class."

ResultArguments = Annotated[
    list[Path],
    typer.Argument(metavar="RESULT…", help="Reports in JSON, as --ldos-report RESULT.json writes them; one a machine."),
]
PageUrls = Annotated[
    list[str] | None,
    typer.Option("--page-url", metavar="URL", help=f"Where the report's page can be downloaded. {_FOR_ONE}"),
]
TraceUrls = Annotated[
    list[str] | None,
    typer.Option("--trace-url", metavar="URL", help=f"Where traces for Perfetto can be downloaded. {_FOR_ONE}"),
]
RunUrls = Annotated[
    list[str] | None,
    typer.Option("--run-url", metavar="URL", help=f"The page of the run that measured. {_FOR_ONE}"),
]


def comment(
    results: ResultArguments,
    page_url: PageUrls = None,
    trace_url: TraceUrls = None,
    run_url: RunUrls = None,
    output: Annotated[Path | None, typer.Option("--output", help="File to write instead of printing.")] = None,
) -> None:
    """Write results as one comment for a pull request.

    In Markdown, the worst verdict first; a job summary takes it, too.

    Exit code: 0 also where something regressed; 2 where a file is no report.
    """
    reports = _read_all(results)
    given = (("full report", page_url or ()), ("traces, for Perfetto", trace_url or ()), ("the run", run_url or ()))
    links = {owner: tuple(_links(given, owner)) for owner in ("", *(each.host_class for each in reports))}
    _require_owners(given, reports)
    put_out_text(lambda: _render(reports, links), output)


def annotate(results: ResultArguments) -> None:
    """Print results as annotations of a GitHub workflow.

    They stand on the tests of scenarios that need a look.

    Exit code: 0 also where something regressed; 2 where a file is no report.
    """
    reports = _read_all(results)
    text = (
        workflow_commands.render(reports[0].document)
        if len(reports) == 1
        else workflow_commands.render_several(reports)
    )
    emit(text)


def _read_all(results: Sequence[Path]) -> tuple[HostReport, ...]:
    return name_reports([read_document(file) for file in results], [str(file) for file in results])


def _render(reports: Sequence[HostReport], links: Mapping[str, tuple[Link, ...]]) -> Rendered:
    if len(reports) > 1:
        links_of = {each.name: links[each.host_class] for each in reports if each.host_class}
        return markdown.render_several(reports, links=links[""], links_of=links_of)
    (only,) = reports
    own = links[only.host_class] if only.host_class else ()
    return markdown.render(only.document, links=(*own, *links[""]))


def _links(given: Iterable[tuple[str, Sequence[str]]], owner: str) -> Iterator[Link]:
    """Those that belong to a host class, or to all where it is empty, in the order of their use."""
    for title, urls in given:
        found = (url for each, url in map(_split, urls) if each == owner and url)
        yield from (Link(title, url) for url in found)


def _require_owners(given: Iterable[tuple[str, Sequence[str]]], reports: Sequence[HostReport]) -> None:
    known = [one_line(each.host_class) for each in reports if each.host_class]
    named = (owner for _, urls in given for owner, _ in map(_split, urls) if owner)
    for owner in named:
        if owner not in {each.host_class for each in reports}:
            raise ConfigurationError(
                f"no result is of host class {owner!r}",
                remedy=f"name one of these: {', '.join(known)}" if known else "give the address without a host class",
            )


def _split(given: str) -> tuple[str, str]:
    """Host class and address of ``CLASS=URL``; of a bare address, which may have a ``=`` too, no class."""
    before, sign, after = given.partition("=")
    is_bare = not sign or ":" in before or "/" in before
    return ("", given) if is_bare else (before, after)
