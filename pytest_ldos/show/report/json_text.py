"""Reports as files: JSON with its schema and validation, other formats, and several machines.

The schema (``docs.generate`` writes it) and the reader are made from the same types, so that nothing invalid is read.
In addition, sizes are limited, keys must be unique, and numbers must be finite.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.files import PlainReader
from pytest_ldos.base.text import Rendered
from pytest_ldos.show.page.formats import Format, require_format, to_json
from pytest_ldos.show.report.document import KIND, SCHEMA_VERSION, Document

FILE: Final = Path(__file__).with_name("schema.json")


def render(document: Document) -> Rendered:
    """JSON text; numbers keep their full precision, and characters outside ASCII are escaped."""
    verdict = None if document.verdict is None else document.verdict.value
    return to_json({"kind": KIND, "schema": SCHEMA_VERSION, "verdict": verdict, **asdict(document)})


LARGEST: Final = 8 * 1024 * 1024  # most bytes of a file
LONGEST_TEXT: Final = 10_000  # most characters of one text
MOST_ITEMS: Final = 10_000  # most items of one list
_LARGEST_INTEGER: Final = 2**53
_LARGEST_NUMBER: Final = 1e18
_REMEDY: Final = "take the file that --ldos-report NAME.json wrote, of this version of pytest-ldos"


class _Wrong(ValueError):
    """Location of an invalid value, and the fault."""


def read_document(file: Path) -> Document:
    """Reads a document from a JSON file.

    Raises `RecordUnreadable` if that fails, it is too large, or, with the place in it, it is not such a document.
    """
    try:
        with file.open("rb") as stream:
            content = stream.read(LARGEST + 1)
    except OSError as error:
        raise RecordUnreadable(f"{file} cannot be read: {error.strerror}", remedy=_REMEDY) from None
    try:
        return decode_document(content)
    except ValueError as wrong:
        raise RecordUnreadable(f"{file} is not a report: {wrong}", remedy=_REMEDY) from None


def decode_document(content: bytes) -> Document:
    plain = _parse(content)
    for name, value in (("kind", KIND), ("schema", SCHEMA_VERSION)):
        if name not in plain or type(plain[name]) is not type(value) or plain[name] != value:
            raise _Wrong(f"its {name} is not {value!r}")
    rest = {name: plain[name] for name in plain if name not in {"kind", "schema", "verdict"}}
    document: Document = _READER.read(Document, rest, "")
    if plain.get("verdict", "") != (document.verdict.value if document.verdict else None):
        raise _Wrong("its verdict is not the worst of its sections'")
    return document


def _parse(content: bytes) -> dict[str, Any]:
    if len(content) > LARGEST:
        raise _Wrong(f"it is larger than {LARGEST} bytes")
    try:
        plain = json.loads(content.decode(), object_pairs_hook=_object, parse_constant=_refuse_constant)
    except _Wrong:
        raise
    except (ValueError, RecursionError) as error:
        raise _Wrong(f"it is not JSON ({type(error).__name__})") from None
    if not isinstance(plain, dict):
        raise _Wrong("it is not a JSON object")
    return plain


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Wrong("an object has a duplicate key")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise _Wrong(f"it has the number {name}")


def _read_text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{place} is not a text")
    if len(value) > LONGEST_TEXT:
        raise ValueError(f"{place} is longer than {LONGEST_TEXT} characters")
    return value


def _read_flag(value: Any, place: str) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{place} is neither true nor false")
    return value


def _read_integer(value: Any, place: str) -> int:
    if type(value) is not int or abs(value) > _LARGEST_INTEGER:
        raise ValueError(f"{place} is not an integer of at most 53 bits")
    return value


def _read_number(value: Any, place: str) -> float:
    if type(value) not in {int, float} or not abs(value) <= _LARGEST_NUMBER or math.isnan(value):
        raise ValueError(f"{place} is not a number between ±{_LARGEST_NUMBER:g}")
    return float(value)


_READER: Final = PlainReader(
    {str: _read_text, bool: _read_flag, int: _read_integer, float: _read_number}, is_whole=True, most_items=MOST_ITEMS
)


def render_as(document: Document, kind: Format, *, width: int = 100, color: bool = False) -> Rendered:
    """The document in a format, which may be `Unavailable`; width and colour apply to a terminal only."""
    require_format(kind)
    if kind is Format.JSON:
        return render(document)
    if kind is Format.HTML:
        from pytest_ldos.show.report import html  # noqa: PLC0415 - its library need not be installed

        return html.render(document)
    from pytest_ldos.show.report import markdown, terminal  # noqa: PLC0415 - not for every command

    if kind is Format.TERMINAL:
        return terminal.render(document, width=width, color=color)
    return markdown.render(document)


@dataclass(frozen=True)
class HostReport:
    """Report of one machine, with a unique name, and its host class; empty if nothing could be measured."""

    document: Document
    host_class: str
    name: str


def name_reports(documents: Sequence[Document], places: Sequence[str]) -> tuple[HostReport, ...]:
    """Names documents by host class, numbered within a class; those without measurements by their place."""
    heads = ((section.head for section in document.sections if section.head is not None) for document in documents)
    classes = [next((head.host_class for head in some), "") for some in heads]
    plain = [found or f"unknown host class ({place})" for found, place in zip(classes, places, strict=True)]
    several, seen = {name for name, count in Counter(plain).items() if count > 1}, Counter[str]()
    reports = []
    for document, host_class, name in zip(documents, classes, plain, strict=True):
        seen[name] += 1
        numbered = f"{name} ({seen[name]} of {plain.count(name)})" if name in several else name
        reports.append(HostReport(document, host_class, numbered))
    return tuple(reports)


def worst_first(reports: Iterable[HostReport]) -> list[HostReport]:
    return sorted(reports, key=lambda each: -each.document.verdict.severity if each.document.verdict else 0)
