"""Formats of pages, by the name a user gives, and values as JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import ConfigurationError, Unavailable
from pytest_ldos.base.text import Rendered, one_line
from pytest_ldos.show.page import markdown, terminal
from pytest_ldos.show.page.model import Page

_COMMAND: Final = re.compile(r"#(?=#[\w.-]*\[)")
"""Prefix of commands in the log of a CI job, recognised anywhere in a line; other formats cannot contain it."""

_FORMULA: Final = ("=", "+", "-", "@", "'")  # first characters that make a spreadsheet interpret text as a formula


def to_json(value: Any, *, indent: int = 1) -> Rendered:
    """JSON text of plain values, in ASCII; raises a `ValueError` for infinity and NaN."""
    text = json.dumps(value, indent=indent, allow_nan=False)
    return Rendered(_COMMAND.sub(r"\\u0023", text) + "\n")


def finite(value: float | None) -> float | None:
    """The number; ``None`` for infinite or NaN, which JSON lacks."""
    return value if value is not None and math.isfinite(value) else None


def to_csv(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> Rendered:
    """CSV text with a heading; each row is one line, and no cell is a formula."""
    sink = io.StringIO()
    csv.writer(sink, lineterminator="\n").writerows(map(_harmless, row) for row in (titles, *rows))
    return Rendered(sink.getvalue())


def _harmless(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = one_line(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


class Format(StrEnum):
    """Values of ``--format``; except for the first, they are also suffixes of files."""

    TERMINAL = "terminal"
    HTML = "html"
    MARKDOWN = "md"
    JSON = "json"


HTML_PACKAGES: Final = ("htpy", "matplotlib")  # packages of the optional extra `report`


def format_of(file: Path) -> Format:
    """The format given by the suffix of a file's name; raises a `ConfigurationError` for an unknown one."""
    try:
        return Format(file.suffix.removeprefix("."))
    except ValueError:
        known = ", ".join(f".{kind}" for kind in Format if kind is not Format.TERMINAL)
        raise ConfigurationError(f"{file} has no format of a report", remedy=f"let it end with {known}") from None


def require_format(kind: Format) -> None:
    """Raises `Unavailable`, which names the package, if the library of a format is not installed."""
    missing = next((name for name in HTML_PACKAGES if find_spec(name) is None), "")
    if kind is Format.HTML and missing:
        raise Unavailable(f"HTML reports need the package {missing}", remedy="pip install 'pytest-ldos[report]'")


def render(page: Page, kind: Format, *, width: int = 100, color: bool = False) -> Rendered:
    """The page in a format for people, which may be `Unavailable`; width and colour apply to a terminal only."""
    require_format(kind)
    if kind is Format.HTML:
        from pytest_ldos.show.page import html  # noqa: PLC0415 - its library need not be installed

        return html.render(page)
    return markdown.render(page) if kind is Format.MARKDOWN else terminal.render(page, width=width, color=color)
