"""A waterfall as SVG: its parts below each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import htpy as h
from htpy import Node

from pytest_ldos.base.text import one_line
from pytest_ldos.base.units import format_duration
from pytest_ldos.measure.metrics.segments import kind_of
from pytest_ldos.show.report.html.drawing import box, line, place
from pytest_ldos.show.report.trace.waterfall import Part, Waterfall
from pytest_ldos.trace.flow.critical import SegmentKind

_WIDTH: Final = 800.0
_WORDS: Final = 310.0
"""Pixels for the names of parts."""

_ROW: Final = 20.0
_BAR: Final = 11.0
_LETTERS: Final = 50
_BOLD_LETTERS: Final = 42
_LETTER: Final = 6.8
"""Pixels, with some to spare."""

_GAP: Final = 4.0
_COLOURS: Final[Mapping[SegmentKind, str]] = {
    SegmentKind.PUBLISH: "s1",
    SegmentKind.TRANSPORT: "s2",
    SegmentKind.EXECUTOR_WAIT: "s4",
    SegmentKind.CALLBACK: "s0",
    SegmentKind.TIMER_WAIT: "s5",
    SegmentKind.CPU_WAIT: "s3",
    SegmentKind.MOTION: "s2",
    SegmentKind.PLANNING_STAGE: "s0",
}
"""Colours of series.css; what is outside callbacks has none."""


def draw_waterfalls(shown: Sequence[Waterfall], *, scale_ns: int = 0) -> Node:
    """Waterfalls below each other.

    Args:
        scale_ns: time of the whole width; each passage's own duration by default.
    """
    longest = max((len(_told(part)) for each in shown for part in each.parts), default=0)
    room = _WIDTH - _WORDS - 2 * _GAP - longest * _LETTER
    return h.div[[_draw(each, room / max(scale_ns, each.duration_ns, 1)) for each in shown]]


def _draw(shown: Waterfall, scale: float) -> Node:
    height = _ROW * (len(shown.parts) + 1) + 4
    title = f"{shown.title}: {format_duration(shown.duration_ns if shown.whole_ns is None else shown.whole_ns)}"
    drawing = h.svg(
        {"viewBox": f"0 0 {place(_WIDTH)} {place(height)}"},
        class_="plot waterfall",
        role="img",
    )[
        h.title[one_line(title)],
        h.text(x="0", y="13", class_="strong")[one_line(title)],
        list(_rows(shown, scale)),
    ]
    return h.div(".scroll", role="region", aria_label=one_line(title), tabindex="0")[drawing]


def _rows(shown: Waterfall, scale: float) -> Iterator[Node]:
    begin, has_marked = 0, any(part.is_marked for part in shown.parts)
    for number, part in enumerate(shown.parts, 1):
        y, x = _ROW * number, _WORDS + begin * scale
        width = max(part.duration_ns * scale, 0.75)
        begin += part.duration_ns
        told, name = _told(part), one_line(part.name)
        kinds = f"part {_look(part, has_marked=has_marked)}"
        yield h.g(class_=kinds)[
            h.title[f"{name}: {told}"],
            line(_WORDS, y + _ROW - 2, _WIDTH, y + _ROW - 2, "grid"),
            h.text(x="0", y=place(y + 13), class_="name")[_cut(name, _BOLD_LETTERS if part.is_marked else _LETTERS)],
            box(x, y + 4, width, _BAR, "bar"),
            h.text(x=place(x + width + _GAP), y=place(y + 13))[told],
        ]


def _told(part: Part) -> str:
    """Duration and note, at the right of the bar."""
    return ", ".join(filter(None, (format_duration(part.duration_ns), one_line(part.note))))


def _look(part: Part, *, has_marked: bool) -> str:
    """Classes of a part; where parts are marked, the others have no colour."""
    if has_marked and not part.is_marked:
        return "plain"
    return f"{colour_of(part.name)} marked" if part.is_marked else colour_of(part.name)


def colour_of(name: str) -> str:
    """Class of a part's colour, by the kind in its name."""
    kind = kind_of(name if ": " in name else f"{name}: ")
    return _COLOURS.get(kind, "plain") if kind is not None else "plain"


def _cut(name: str, letters: int) -> str:
    return name if len(name) <= letters else f"{name[: letters - 1]}…"
