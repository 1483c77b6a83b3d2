"""Markdown of tables, prose and values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from textwrap import dedent
from typing import Any, Final

from pytest_ldos.show.page.markdown import Markdown, grid

_DEFAULT: Final = re.compile(r"\s*[(\[]default: (?P<value>.+)[)\]]$")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    cells = ([Markdown(cell.replace("|", r"\|")) for cell in row] for row in rows)
    yield from grid([Markdown(title) for title in head], cells).splitlines()


def prose(text: str) -> Iterator[str]:
    """Documentation as Markdown: what is indented is code, other paragraphs flow."""
    for is_code, paragraphs in groupby(text.split("\n\n"), key=lambda paragraph: paragraph.startswith("    ")):
        if is_code:
            yield from ("```python", dedent("\n\n".join(paragraphs)).rstrip(), "```", "")
        else:
            for paragraph in paragraphs:
                yield from (flowing(re.sub("::$", ":", paragraph)), "")


def flowing(text: str) -> str:
    """A paragraph in one line, with Markdown's code spans."""
    return re.sub(r"``(.+?)``", r"`\1`", " ".join(text.split()))


def without_default(text: str) -> tuple[str, str]:
    """A help text and the default that it names, if any."""
    found = _DEFAULT.search(text)
    return (text[: found.start()], found["value"]) if found else (text, "")


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def shown(default: Any) -> str:
    """A default; nothing for none, and for a switch that is off."""
    is_none = default is None or default is False or default in {"", ()}
    return "" if is_none else code(toml(default))


def toml(value: Any) -> str:
    if isinstance(value, StrEnum | Path):
        return str(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, float):
        return f"{value:g}"
    return f'"{value}"' if isinstance(value, str) else str(value)
