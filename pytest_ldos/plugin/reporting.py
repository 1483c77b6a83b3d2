"""Reports that a run was asked for: checked before it measures, written at its end."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.plugin.faults import refused_session
from pytest_ldos.plugin.messages import usage_error

if TYPE_CHECKING:
    from pytest_ldos.show.report.document import Document

_JOB_SUMMARY: Final = "GITHUB_STEP_SUMMARY"
_HTML: Final = ".html"


def refuse_unavailable(files: Sequence[Path]) -> None:
    """Refuses a format whose library is missing, before anything is measured."""
    if not any(file.suffix == _HTML for file in files):
        return
    from pytest_ldos.show.page.formats import Format, require_format

    try:
        require_format(Format.HTML)
    except Unavailable as error:
        raise usage_error(str(error)) from None


def refuse_unwritable(file: Path) -> None:
    """Refuses a file that cannot be written, before anything is measured; makes its folder.

    Raises:
        pytest.UsageError: it is a folder, or its folder cannot be made or written.
        pytest.exit.Exception: the disk is full, and the like.
    """
    from pytest_ldos.base.writable import require_writable_file

    with refused_session():
        require_writable_file(file)


def write_report(document: Document, file: Path) -> str:
    """Writes a report in the format that its name ends with; returns a line on its location.

    Raises:
        OSError: it cannot be written.
    """
    from pytest_ldos.base.writable import write_atomically
    from pytest_ldos.show.page.formats import format_of
    from pytest_ldos.show.report.formats import render_as

    write_atomically(file, render_as(document, format_of(file)))
    return f"report: {file}"


def append_job_summary(document: Document) -> str:
    """Appends the report to the summary of the workflow job that runs this; returns a line on it.

    Raises:
        OSError: it cannot be written.
    """
    from pytest_ldos.show.report import markdown

    file = os.environ.get(_JOB_SUMMARY, "")
    if not file:
        return f"no job summary: {_JOB_SUMMARY} is not set (this is no job of a GitHub workflow)"
    from pytest_ldos.base.writable import writing

    with writing(Path(file)), Path(file).open("a", encoding="utf-8") as stream:
        stream.write(markdown.render(document))
    return f"job summary: {file}"
