"""A document for CI: workflow commands of GitHub, which annotate tests that need attention, and JUnit properties.

Reference: GitHub's "Workflow commands"; actions/runner, ``ActionCommand.cs``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Final

from pytest_ldos.base.text import Rendered, one_line
from pytest_ldos.judge.gate.verdict import Tone
from pytest_ldos.show.report import words
from pytest_ldos.show.report.document import Document, MetricReport, Section
from pytest_ldos.show.report.json_text import HostReport, worst_first

MOST: Final = 10  # most annotations of one kind that GitHub shows for a step
_LONGEST: Final = 600
_MOST_LINES: Final = 10

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
    is_notable = section.accepted or any(words.describe_caveats(section))
    return _COMMANDS.get(section.verdict.tone) or ("notice" if is_notable else None)


def _annotate(command: str, section: Section, where: str) -> str:
    stack = words.title_of(filter(None, [section.stack]))
    title = f"{stack} {section.scenario} {words.verdict_word(section.verdict)}{where}"
    properties, test = [f"title={_escape(_short(title), _IN_PROPERTY)}"], section.test
    if test is not None and _BELOW_ROOT.fullmatch(test.file) and test.line > 0:  # others have no place
        properties[:0] = [f"file={_escape(_short(test.file), _IN_PROPERTY)}", f"line={test.line}"]
    lines = [_short(line) for line in _message(section)][:_MOST_LINES]
    return f"::{command} {','.join(properties)}::{_escape(chr(10).join(lines), _IN_DATA)}"


def _message(section: Section) -> Iterator[str]:
    moved = [*map(words.describe_move, words.moved_metrics(section)), *section.accepted, *words.describe_paths(section)]
    yield from (
        moved or section.reasons or tuple(words.describe_caveats(section)) or (words.verdict_word(section.verdict),)
    )
    yield from (f"→ {each}" for each in section.advice)


def _short(text: str) -> str:
    line = one_line(text).strip()
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _escape(text: str, table: dict[str, str]) -> str:
    return "".join(table.get(character, character) for character in text)


def junit_properties(document: Document) -> Mapping[str, str]:
    """Properties by name; for several verdicts in one test, names include the scenario, and a number if needed."""
    prefixes: list[str] = []
    for section in document.sections:
        named = f"ldos.{section.scenario}"
        candidates = chain(["ldos", named], (f"{named}-{number}" for number in count(len(prefixes) + 1)))
        prefixes.append(next(each for each in candidates if each not in prefixes))
    sections = zip(prefixes, document.sections, strict=True)
    properties = ((f"{prefix}.{name}", value) for prefix, section in sections for name, value in _properties(section))
    return {one_line(name): one_line(value) for name, value in properties}


def _properties(section: Section) -> Iterator[tuple[str, str]]:
    yield "scenario", section.scenario
    if section.verdict is not None:
        yield "verdict", section.verdict.value
    if section.accepted:
        yield "accepted", "; ".join(section.accepted)
    if section.head is not None:
        yield "successes", f"{section.head.successes}/{section.head.trials}"
        yield "commit", section.head.commit
    if section.base is not None:
        yield "base", section.base.commit or section.base.label
    for metric in section.metrics:
        yield from ((f"{metric.name}.{name}", value) for name, value in _metric_properties(metric))


def _metric_properties(metric: MetricReport) -> Iterator[tuple[str, str]]:
    if metric.verdict is not None:
        yield "verdict", metric.verdict.value
    sample, change = metric.head, metric.change
    if sample is not None and sample.median is not None:
        in_unit = f"_{metric.unit}" if metric.unit else ""
        yield f"median{in_unit}", _number(sample.median)
        yield "cv", _number(sample.cv)
        yield f"values{in_unit}", " ".join(_number(point.value) for point in sample.points)
    if change is not None and change.has_ratio:
        yield "ratio", _number(change.ratio)
        yield "ratio_low", "0" if change.low is None and not change.is_endless else _number(change.low)
        yield "ratio_high", _number(change.high)
        yield "mde", _number(change.mde)
    yield from ((f"{each.name}.p_value", _number(each.p_value)) for each in metric.aspects)


def _number(value: float | None) -> str:
    """A number as text; an unbounded one is ``inf``."""
    return "inf" if value is None else f"{value:.6g}"
