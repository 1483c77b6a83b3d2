"""Page of a search for the commit that brought a regression."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_ldos.base.text import Rendered
from pytest_ldos.campaign.commits.result import CommitResult
from pytest_ldos.show.page.formats import Format, render_result
from pytest_ldos.show.page.model import Bullets, Page, Section, Tone
from pytest_ldos.show.report.bisect.plain import to_plain
from pytest_ldos.show.report.bisect.words import answer, commit_table, legend, name_of, remarks


def render_bisect_as(result: CommitResult, kind: Format, *, width: int = 100, color: bool = False) -> Rendered:
    """The result in a format; width and colour matter to a terminal alone.

    Raises:
        Unavailable: see `require_format`.
    """
    return render_result(result, kind, page=compose_page, plain=to_plain, width=width, color=color)


def compose_page(result: CommitResult) -> Page:
    """The answer first, then the commits."""
    suspects = tuple(map(name_of, result.suspects)) if len(result.suspects) > 1 else ()
    return Page(
        title="ldos: bisect",
        setting=tuple(_setting(result)),
        answer=answer(result),
        blocks=(
            Bullets(tuple(remarks(result))),
            Section("One of these commits", (Bullets(suspects),)),
            Section("Measured commits", (commit_table(result),)),
            Section("How to read this", (Bullets(tuple(legend(result)), Tone.QUIET),)),
        ),
    )


def _setting(result: CommitResult) -> Iterator[str]:
    template = result.template
    if template is not None:
        yield from (template.scenario, template.stack, template.recorder)
    yield f"{result.good.name}..{result.bad.name}"
