"""Every form of a sweep's file, by how its name ends."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.text import Rendered
from pytest_ldos.show.page.formats import Format, format_of, render, require_format
from pytest_ldos.show.report.sweep.data import render_csv, render_json
from pytest_ldos.show.report.sweep.document import SweepReport
from pytest_ldos.show.report.sweep.page import compose_page

SUFFIXES: Final = (".html", ".md", ".json", ".csv")
_DATA: Final = {".json": render_json, ".csv": render_csv}


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
    if file.suffix in _DATA:
        return _DATA[file.suffix](report)
    return render(compose_page(report), format_of(file))


def render_text(report: SweepReport, *, width: int, color: bool) -> Rendered:
    """The report for a terminal."""
    return render(compose_page(report), Format.TERMINAL, width=width, color=color)
