"""A document as workflow commands of GitHub: an annotation on the test of each scenario that needs attention.

Reference: GitHub's "Workflow commands"; actions/runner, ``ActionCommand.cs``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pytest_ldos.base.text import Rendered, one_line
from pytest_ldos.judge.gate.verdict import Tone
from pytest_ldos.show.report import words
from pytest_ldos.show.report.document import Document, Section
from pytest_ldos.show.report.json_text import HostReport, worst_first

MOST: Final = 10  # most annotations of one kind that GitHub shows for a step
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
    """As many lines of each kind as are shown; if there are more, the last has their number."""
    lines = [_annotate(command, each, where) for each, where in sections if (command := _command(each))]
    kept: list[str] = []
    for command in _KINDS:
        found = [line for line in lines if line.startswith(f"::{command} ")]
        left = len(found) - MOST + 1
        more = [f"::{command} title=ldos::and {left} scenarios more: see the report"]
        kept += found if len(found) <= MOST else [*found[: MOST - 1], *more]
    return Rendered("".join(f"{line}\n" for line in kept))


def _command(section: Section) -> str | None:
    if section.verdict is None:
        return None
    return _COMMANDS.get(section.verdict.tone) or ("notice" if any(words.describe_caveats(section)) else None)


def _annotate(command: str, section: Section, where: str) -> str:
    stack = words.title_of(filter(None, [section.stack]))
    title = f"{stack} {section.scenario} {words.verdict_word(section.verdict)}{where}"
    properties, test = [f"title={_escape(_short(title), _IN_PROPERTY)}"], section.test
    if test is not None and _BELOW_ROOT.fullmatch(test.file) and test.line > 0:  # others have no place
        properties[:0] = [f"file={_escape(_short(test.file), _IN_PROPERTY)}", f"line={test.line}"]
    lines = [_short(line) for line in _message(section)][:_MOST_LINES]
    return f"::{command} {','.join(properties)}::{_escape(chr(10).join(lines), _IN_DATA)}"


def _message(section: Section) -> Iterator[str]:
    moved = [*map(words.describe_move, words.moved_metrics(section)), *words.describe_paths(section)]
    yield from (
        moved or section.reasons or tuple(words.describe_caveats(section)) or (words.verdict_word(section.verdict),)
    )
    yield from (f"→ {each}" for each in section.advice)


def _short(text: str) -> str:
    line = one_line(text).strip()
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _escape(text: str, table: dict[str, str]) -> str:
    return "".join(table.get(character, character) for character in text)
