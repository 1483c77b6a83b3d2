"""Values as JSON and CSV: whole in a program that reads them, and harmless in a log or a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from pytest_ldos.base.text import Rendered, one_line

_COMMAND: Final = re.compile(r"#(?=#[\w.-]*\[)")
"""To the log of a CI job, which takes it anywhere in a line; only a text can have it."""

_FORMULA: Final = ("=", "+", "-", "@", "'")
"""First characters by which a spreadsheet takes text for more than text."""


def to_json(value: Any, *, indent: int = 1) -> Rendered:
    """JSON text of plain values; what is no ASCII is escaped.

    Raises:
        ValueError: a number is infinite or none.
    """
    text = json.dumps(value, indent=indent, allow_nan=False)
    return Rendered(_COMMAND.sub(r"\\u0023", text) + "\n")


def finite(value: float | None) -> float | None:
    """The number; ``None`` instead of one that is infinite or none, which JSON has not."""
    return value if value is not None and math.isfinite(value) else None


def to_csv(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> Rendered:
    """CSV text with a heading; each row is one line, and no text in it is run."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerows(map(_harmless, row) for row in (titles, *rows))
    return Rendered(sink.getvalue())


def _harmless(value: object) -> object:
    """Numbers as they are; text on one line, and as text."""
    if not isinstance(value, str):
        return value
    text = one_line(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
