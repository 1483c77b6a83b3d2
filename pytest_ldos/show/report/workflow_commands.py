"""A document as workflow commands of GitHub: an annotation on the test of each scenario that needs attention.

A good verdict with unjudged metrics is a notice.

Reference: GitHub's "Workflow commands"; actions/runner, ``ActionCommand.cs``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pytest_ldos.base.text import Rendered, one_line
from pytest_ldos.judge.gate.verdict import Tone
from pytest_ldos.show.report.document import Document, Place, Section
from pytest_ldos.show.report.formats import HostReport, worst_first
from pytest_ldos.show.report.words import (
    describe_caveats,
    describe_move,
    describe_paths,
    moved_metrics,
    title_of,
    verdict_word,
)

MOST: Final = 10
"""Most annotations of one kind that GitHub shows for a step."""

_LONGEST: Final = 600
_MOST_LINES: Final = 8

_COMMANDS: Final = {Tone.BAD: "error", Tone.DOUBT: "warning"}
_KINDS: Final = (*_COMMANDS.values(), "notice")
_IN_DATA: Final = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTY: Final = {**_IN_DATA, ":": "%3A", ",": "%2C"}
_BELOW_ROOT: Final = re.compile(r"(?!/)(?!(?:.*/)?\.\.(?:/|$))[^\\\x00-\x1f]+")


def render(document: Document) -> Rendered:
    """A line for each scenario that needs attention; its text is escaped."""
    return _render((section, "") for section in document.sections)


def render_several(reports: Sequence[HostReport]) -> Rendered:
    """The same for several machines, named in the titles."""
    return _render((section, f" on {each.name}") for each in worst_first(reports) for section in each.document.sections)


def _render(sections: Iterable[tuple[Section, str]]) -> Rendered:
    lines = [_annotate(command, each, where) for each, where in sections if (command := _command(each))]
    kept = [line for command in _KINDS for line in _first(lines, command)]
    return Rendered("".join(f"{line}\n" for line in kept))


def _command(section: Section) -> str | None:
    if section.verdict is None:
        return None
    return _COMMANDS.get(section.verdict.tone) or ("notice" if any(describe_caveats(section)) else None)


def _first(lines: list[str], command: str) -> list[str]:
    """As many as are shown; if there are more, the last has their number."""
    found = [line for line in lines if line.startswith(f"::{command} ")]
    if len(found) <= MOST:
        return found
    left = len(found) - MOST + 1
    return [*found[: MOST - 1], f"::{command} title=ldos::and {left} scenarios more: see the report"]


def _annotate(command: str, section: Section, where: str) -> str:
    title = f"{title_of(filter(None, [section.stack]))} {section.scenario} {verdict_word(section.verdict)}{where}"
    properties = [*_place(section.test), f"title={_escape(_short(title), _IN_PROPERTY)}"]
    lines = [_short(line) for line in _message(section)][:_MOST_LINES]
    return f"::{command} {','.join(properties)}::{_escape(chr(10).join(lines), _IN_DATA)}"


def _place(test: Place | None) -> Iterator[str]:
    """Place of the annotation; files outside the project have none."""
    if test is not None and _BELOW_ROOT.fullmatch(test.file) and test.line > 0:
        yield f"file={_escape(_short(test.file), _IN_PROPERTY)}"
        yield f"line={test.line}"


def _message(section: Section) -> Iterator[str]:
    """Changes with their segments and advice, or the reasons."""
    moved = [*map(describe_move, moved_metrics(section)), *describe_paths(section)]
    yield from moved or section.reasons or tuple(describe_caveats(section)) or (verdict_word(section.verdict),)
    yield from (f"→ {each}" for each in section.advice)


def _short(text: str) -> str:
    line = one_line(text).strip()
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _escape(text: str, table: dict[str, str]) -> str:
    return "".join(table.get(character, character) for character in text)
