"""Flame graphs as self-contained SVG without scripts; each frame has a tooltip.

Names come from measured programs: they are text, never markup.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

import htpy as h
from htpy import Element, Node
from markupsafe import Markup

from pytest_ldos.base.text import Rendered, one_line
from pytest_ldos.record.profiles import Change, Difference, FoldedStacks, Frame, build_tree
from pytest_ldos.show.report.flame.files import (
    Place,
    Weight,
    describe_change,
    describe_frame,
    place_frames,
    title_lines,
)
from pytest_ldos.show.report.html.drawing import box, place

_WIDTH: Final = 1200.0
_MARGIN: Final = 12.0
_ROW: Final = 17.0
_LINE: Final = 17.0
_LETTER: Final = 6.7
"""Width of a letter [px]."""

_NARROWEST: Final = 0.4
"""Least width of a drawn frame [px]."""

_PADDING: Final = 3.0
_FEWEST_LETTERS: Final = 3
_WARM: Final = 8
_STEPS: Final = 5
"""Number of colours of a change in flame.css."""

_STEP: Final = 0.02
"""Change of share per step of colour."""


def draw_flame(profile: FoldedStacks, *, title: str, notes: Sequence[str] = ()) -> Rendered:
    """A flame graph: width is a frame's share of samples; frames above it are its callees."""
    tree = build_tree([profile])
    whole = max(tree.counts[0], 1)
    picture = _Picture(
        weight=lambda frame: frame.counts[0] / whole,
        kind=lambda frame: f"warm{zlib.crc32(one_line(frame.name).encode()) % _WARM}" if frame.path else "all",
        tip=lambda frame: describe_frame(frame, whole),
    )
    return _render(tree, picture, title, [*title_lines(whole), *notes])


def draw_difference(difference: Difference, *, title: str, notes: Sequence[str] = ()) -> Rendered:
    """A differential flame graph of two profiles: width is the mean of both shares, colour the change.

    Only significant changes are coloured.
    """
    bases, heads = difference.base_samples, difference.head_samples
    picture = _Picture(
        weight=lambda frame: (frame.counts[0] / bases + frame.counts[1] / heads) / 2,
        kind=lambda frame: _colour(difference.changes[frame.path]) if frame.path else "all",
        tip=lambda frame: _tip(difference, frame),
    )
    return _render(difference.tree, picture, title, notes)


def _tip(difference: Difference, frame: Frame) -> str:
    if frame.path:
        return describe_change(difference.changes[frame.path], frame)
    return f"all: {difference.base_samples} and {difference.head_samples} samples"


@dataclass(frozen=True)
class _Picture:
    """The look of frames.

    Attributes:
        kind: names the colour in the style sheet.
        tip: tooltip of the frame.
    """

    weight: Weight
    kind: Callable[[Frame], str]
    tip: Callable[[Frame], str]


def _colour(change: Change) -> str:
    """Colour by size of the change; none if it is not significant."""
    if not change.is_certain:
        return "same"
    step = min(_STEPS, 1 + int(abs(change.change) / _STEP))
    return f"{'more' if change.change > 0 else 'less'}{step}"


def _render(tree: Frame, picture: _Picture, title: str, lines: Iterable[str]) -> Rendered:
    inner = _WIDTH - 2 * _MARGIN
    places = list(place_frames(tree, picture.weight, narrowest=_NARROWEST / inner))
    depth = max(each.frame.depth for each in places)
    notes = [one_line(line) for line in lines]
    top = _MARGIN + 24 + _LINE * len(notes)
    bottom = top + _ROW * depth
    frames = [_frame(each, picture, inner, bottom - _ROW * each.frame.depth) for each in places]
    heading = [
        _words(_MARGIN, _MARGIN + 14, one_line(title), "title"),
        [_words(_MARGIN, _MARGIN + 34 + _LINE * number, line, "note") for number, line in enumerate(notes)],
    ]
    height = bottom + _ROW + _MARGIN
    size = {"viewBox": f"0 0 {place(_WIDTH)} {place(height)}", "xmlns": "http://www.w3.org/2000/svg"}
    drawn = h.svg(size, width=place(_WIDTH), height=place(height), role="img", aria_label=one_line(title))[
        h.style[Markup(_style())],  # noqa: S704 - a file of this package
        box(0, 0, _WIDTH, height, "paper"),
        heading,
        frames,
    ]
    return Rendered(f"{one_line(str(drawn))}\n")


def _frame(at: Place, picture: _Picture, inner: float, y: float) -> Element:
    left, width = _MARGIN + inner * at.left, inner * at.width
    label = _fitting(one_line(at.frame.name), width)
    return h.g[
        h.title[one_line(picture.tip(at.frame))],
        box(left, y, width, _ROW - 1, picture.kind(at.frame)),
        _words(left + _PADDING, y + 12, label, "name") if label else None,
    ]


def _fitting(name: str, width: float) -> str:
    """As much of a name as there is room for; empty if that is too little."""
    room = int((width - 2 * _PADDING) / _LETTER)
    if len(name) <= room:
        return name
    return f"{name[: room - 1]}…" if room >= _FEWEST_LETTERS else ""


def _words(x: float, y: float, text: str, kind: str) -> Node:
    return h.text(x=place(x), y=place(y), class_=kind)[one_line(text)]


def _style() -> str:
    return files("pytest_ldos.show.report.flame").joinpath("flame.css").read_text("utf-8")
