"""Every form of a sweep's file, by how its name ends."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.text import Rendered
from pytest_ldos.show.report.formats import Format, require_format
from pytest_ldos.show.report.sweep import data, markdown
from pytest_ldos.show.report.sweep.document import SweepReport

SUFFIXES: Final = (".html", ".md", ".json", ".csv")


def require_suffix(file: Path) -> None:
    """Refuses a file that could not be written when all is measured.

    Raises:
        ConfigurationError: its name asks for no format, or its folder is not there.
        Unavailable: the format's library is not installed.
    """
    if file.suffix not in SUFFIXES:
        raise ConfigurationError(f"{file} has no format of a sweep", remedy=f"let it end with {', '.join(SUFFIXES)}")
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise ConfigurationError(f"{file} cannot be written", remedy="name a file in a folder that exists")
    if file.suffix == ".html":
        require_format(Format.HTML)


def render_for(report: SweepReport, file: Path) -> Rendered:
    """The text of a file, in the format of its name; see `require_suffix`."""
    if file.suffix == ".html":
        from pytest_ldos.show.report.sweep import page  # noqa: PLC0415 - its library need not be installed

        return page.render(report)
    if file.suffix == ".csv":
        return data.render_csv(report)
    return markdown.render(report) if file.suffix == ".md" else data.render_json(report)
