"""Shows results of the lab's machines: checks each whole, then writes one comment, the job summary and annotations.

Usage: .venv/bin/python .ci/results/render.py FOLDER COMMENT.md

HOST_CLASSES           labels of the machines, a JSON list: FOLDER/result-LABEL/result.json is what each has left, with
                       page-url and trace-url beside it; not set: FOLDER/result.json is the only one
RUN_URL                the page of the run
GITHUB_SERVER_URL, GITHUB_REPOSITORY   only addresses there are shown
GITHUB_STEP_SUMMARY    the job's summary, where there is one

Its exit status is 1 where a machine left no result that can be shown; those of the others are shown all the same.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from artifacts import find_artifact
from github_api import Failed
from labels import parse_labels
from links import own_link, read_artifact_link
from surroundings import append_to

from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.text import one_line
from pytest_ldos.show.page.model import Link
from pytest_ldos.show.report import markdown, workflow_commands
from pytest_ldos.show.report.document import Document
from pytest_ldos.show.report.json_text import HostReport, name_reports, read_document


@dataclass(frozen=True)
class Received:
    """Results of one machine.

    Attributes:
        label: of the machine; empty where it is the only one.
        document: its result; ``None`` where there is none that can be read.
        links: to its own report and traces.
        fault: why there is no result.
    """

    label: str
    document: Document | None
    links: tuple[Link, ...] = ()
    fault: str = ""


def main(folder: str, comment: str) -> int:
    """Entry point."""
    try:
        received = [_receive(label, place) for label, place in _places(Path(folder))]
    except Failed as failed:
        sys.stderr.write(f"render: {failed}\n")
        return 2
    text = render_comment(received)
    Path(comment).parent.mkdir(exist_ok=True)
    Path(comment).write_text(text, "utf-8")
    append_to("GITHUB_STEP_SUMMARY", text)
    reports = _name(received)
    sys.stdout.write(_annotate(reports))
    missing = [each for each in received if each.document is None]
    for each in missing:
        sys.stderr.write(f"render: {one_line(each.fault)}\n")
    return 1 if missing else 0


def _places(folder: Path) -> Iterator[tuple[str, Path | None]]:
    asked = os.environ.get("HOST_CLASSES")
    if asked is None:
        yield "", folder
    else:
        yield from ((label, find_artifact(folder, "result", label)) for label in parse_labels(asked))


def _receive(label: str, folder: Path | None) -> Received:
    name = label or "the machine"
    file = folder / "result.json" if folder else None
    if file is None or file.is_symlink() or file.parent.is_symlink() or not file.is_file():
        return Received(label, None, fault=f"{name} left no result")
    try:
        return Received(label, read_document(file), _read_links(file.parent))
    except LdosError as error:
        return Received(label, None, fault=f"{name}: {error}")


def _read_links(folder: Path) -> tuple[Link, ...]:
    named = (("full report", "page-url"), ("traces, for Perfetto", "trace-url"))
    found = ((title, read_artifact_link(folder / name)) for title, name in named)
    return tuple(Link(title, url) for title, url in found if url)


def render_comment(received: Sequence[Received]) -> str:
    """All results in one comment; machines without one are named at its end."""
    reports = _name(received)
    run = own_link(os.environ.get("RUN_URL", ""))
    links = [Link("the run", run)] if run else []
    links_of = {report.name: each.links for report, each in zip(reports, _shown(received), strict=True)}
    missing = [each.label or "the machine" for each in received if each.document is None]
    return _render(reports, links, links_of) + "".join(f"\n❌ No result came from {name}.\n" for name in missing)


def _render(reports: Sequence[HostReport], links: Sequence[Link], links_of: Mapping[str, Sequence[Link]]) -> str:
    if not reports:
        lines = "\n".join(f"\n[{each.title}]({each.url})" for each in links)
        return f"{markdown.MARK}\n## ldos: ❌ nothing was measured\n{lines}\n"
    if len(reports) == 1:
        (only,) = reports
        return markdown.render(only.document, links=(*links_of[only.name], *links))
    return markdown.render_several(reports, links=links, links_of=links_of)


def _shown(received: Sequence[Received]) -> list[Received]:
    return [each for each in received if each.document is not None]


def _name(received: Sequence[Received]) -> tuple[HostReport, ...]:
    shown = [(each.document, each.label) for each in received if each.document is not None]
    return name_reports([document for document, _ in shown], [label for _, label in shown])


def _annotate(reports: Sequence[HostReport]) -> str:
    if len(reports) == 1:
        return workflow_commands.render(reports[0].document)
    return workflow_commands.render_several(reports) if reports else ""


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="render", description="Shows results of the lab's machines.")
    parser.add_argument("folder", help="result-LABEL/result.json with HOST_CLASSES, or result.json alone")
    parser.add_argument("comment", help="the Markdown file to write")
    return parser.parse_args()


if __name__ == "__main__":
    given = _parse_arguments()
    sys.exit(main(given.folder, given.comment))
