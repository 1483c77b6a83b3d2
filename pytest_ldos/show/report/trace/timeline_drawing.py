"""The timeline in a page: a static picture, and the numbers from which our script draws any part of it."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from typing import Any, Final

import htpy as h
import numpy as np
from htpy import Node
from markupsafe import Markup

from pytest_ldos.base.text import NS_PER_US, counted, format_duration, one_line
from pytest_ldos.show.page.formats import to_json
from pytest_ldos.show.report.html.drawing import box, line, place
from pytest_ldos.show.report.trace.graph import cut
from pytest_ldos.show.report.trace.timeline import GoalSlice, Numbers, Slices, Timeline
from pytest_ldos.trace.flow.executors import STATES, WAITING

_WIDTH: Final = 1100.0
_NAMES: Final = 260.0
"""Width of the names of tracks [px]."""

_ROW: Final = 22.0
_GOALS: Final = 26.0
_LETTERS: Final = 7.0
_LARGEST: Final = 1 << 30
_TICKS: Final = 6


def draw_timeline(timeline: Timeline) -> Node:
    """Draws the whole trace as a static picture; with scripts, buttons and keys show any part of it."""
    name = "Timeline of threads, callbacks, messages and goals"
    return h.div(".timeline")[
        h.ul(".legend")[
            [h.li[h.span(class_=kind, aria_hidden="true")["■"], words] for kind, words in _legend(timeline)]
        ],
        h.div(".scroll.fixed", role="region", aria_label=name, tabindex="0")[_picture(timeline)],
        h.script(type="application/json")[Markup(_data(timeline))],  # noqa: S704 - escaped by `_data`
    ]


_KINDS: Final = (
    ("sent", "publications"),
    ("waiting", "executor waits"),
    ("processing", "executor collects what is ready"),
    ("executing", "executor executes"),
    ("cpu", "thread waits for a CPU"),
)
"""Labels of slices by kind; each kind has its own colour."""


def _legend(timeline: Timeline) -> list[tuple[str, str]]:
    return [(kind, words) for kind, words in _KINDS if len(timeline.slices[kind])]


def anchor_of(goal: int) -> str:
    """Identifier of the slice of a goal."""
    return f"goal-{goal + 1}"


def describe_timeline(timeline: Timeline) -> Iterator[str]:
    """Sentences on the content of the tracks, and on merged or omitted slices."""
    counts = {"runs": "callback run", "sent": "publication", WAITING: "executor wait", "cpu": "wait for a CPU"}
    shown = [
        counted(len(each) + each.merged, counts[kind], "waits for a CPU" if kind == "cpu" else "")
        for kind, each in timeline.slices.items()
        if len(each) and kind in counts
    ]
    length = format_duration(timeline.length_us * NS_PER_US)
    yield f"{length}, {counted(len(timeline.tracks), 'thread')}: {', '.join(shown) or 'nothing'}"
    if timeline.without_states:
        some = "" if timeline.without_states == len(timeline.tracks) else f" in {timeline.without_states} of these"
        outside = "threads outside executors, rclcpp's events executor and rclpy report none"
        yield f"executor states are absent{some}: {outside}"
    if timeline.gaps:
        lost = sum(length for _, length in timeline.gaps) * NS_PER_US
        spans = counted(len(timeline.gaps), "span")
        yield f"shaded: {spans}, {format_duration(lost)} together, in which events were lost"
    merged = sum(each.merged for each in timeline.slices.values())
    if merged:
        yield f"{merged} spans are merged with their neighbours, because there are too many"
    if timeline.arrows.left_out:
        yield f"{timeline.arrows.left_out} arrows are left out: others of their topic begin at the same place"


def _picture(timeline: Timeline) -> Node:
    top = _GOALS if timeline.goals else 4.0
    height = top + _ROW * len(timeline.tracks) + 24
    scale = (_WIDTH - _NAMES - 8) / timeline.length_us
    return h.svg(
        {"viewBox": f"0 0 {place(_WIDTH)} {place(height)}"},
        class_="plot wide tracks",
        role="img",
        aria_label=f"{counted(len(timeline.tracks), 'thread')} over {format_duration(timeline.length_us * NS_PER_US)}",
    )[
        [_gap(*each, top, height - 24, scale) for each in timeline.gaps],
        [_goal(each, number, scale) for number, each in enumerate(timeline.goals)],
        [_track(timeline, number, top, scale) for number in range(len(timeline.tracks))],
        list(_axis(timeline, height, scale)),
    ]


def _gap(begin_us: int, length_us: int, top: float, bottom: float, scale: float) -> Node:
    return box(_NAMES + begin_us * scale, top, max(length_us * scale, 1.0), bottom - top, "gap")


def _goal(goal: GoalSlice, number: int, scale: float) -> Node:
    x, width = _NAMES + goal.begin_us * scale, max(goal.length_us * scale, 2.0)
    label = h.text(x=place(x + 3), y="14")[cut(goal.name)] if len(cut(goal.name)) * _LETTERS < width else None
    tooltip = f"{one_line(goal.name)}: {format_duration(goal.length_us * NS_PER_US)}"
    phases = [line(at, 2, at, 20, "zero") for _, us in goal.phases if (at := _NAMES + us * scale) > x]
    return h.g(id=anchor_of(number), class_="goal")[h.title[tooltip], box(x, 2, width, 18, "span"), phases, label]


def _track(timeline: Timeline, number: int, top: float, scale: float) -> Node:
    y = top + _ROW * number
    name = one_line(timeline.tracks[number])
    states = ((state, 14.0, 3.5) for state in STATES)
    kinds = (*states, ("runs", 3.0, 10.0), ("sent", 0.0, 3.0), ("cpu", 18.0, 3.0))
    return h.g(class_="track")[
        h.title[name],
        line(0, y + _ROW - 1, _WIDTH, y + _ROW - 1, "grid"),
        h.text(x="0", y=place(y + 13), class_="small")[cut(name)],
        [
            h.path(d=path, class_=kind)
            for kind, offset, height in kinds
            if (path := _spans(timeline.slices[kind], number, y + offset, height, scale))
        ],
    ]


def _spans(slices: Slices, track: int, y: float, height: float, scale: float) -> str:
    """Rectangles of all pixels with a span, as one path."""
    first, last = np.searchsorted(slices.track, [track, track + 1])
    begin = np.floor(slices.begin_us[first:last] * scale).astype(np.int64)
    end = np.maximum(np.ceil((slices.begin_us + slices.length_us)[first:last] * scale).astype(np.int64), begin + 1)
    if not len(begin):
        return ""
    end = np.maximum.accumulate(end)
    begins = np.flatnonzero(np.append(True, begin[1:] > end[:-1]))
    ends = end[np.append(begins[1:], len(begin)) - 1]
    spans = zip(begin[begins].tolist(), ends.tolist(), strict=True)
    return "".join(f"M{place(_NAMES + a)} {place(y)}h{b - a}v{place(height)}h{a - b}z" for a, b in spans)


def _axis(timeline: Timeline, height: float, scale: float) -> Iterator[Node]:
    for number in range(_TICKS):
        us = timeline.length_us * number / (_TICKS - 1)
        x = _NAMES + us * scale
        anchor = "end" if number == _TICKS - 1 else "middle" if number else "start"
        label = format_duration(us * NS_PER_US) if number else "0"
        yield line(x, 0, x, height - 18, "grid")
        yield h.text({"text-anchor": anchor}, x=place(x), y=place(height - 4), class_="small muted")[label]


def _data(timeline: Timeline) -> str:
    """Numbers and words as JSON that is safe within an element; columns as one packed text."""
    unit = timeline.length_us // _LARGEST + 1
    columns: dict[str, list[tuple[str, Numbers]]] = {
        kind: [
            ("track", each.track),
            ("begin", _differences(each.begin_us // unit)),
            ("length", each.length_us // unit),
            ("word", each.word),
        ]
        for kind, each in timeline.slices.items()
    }
    arrows = timeline.arrows
    sent = arrows.sent_us // unit
    columns["arrows"] = [
        ("tail", arrows.tail),
        ("sent", _differences(sent)),
        ("head", arrows.head),
        ("taken", arrows.taken_us // unit - sent),
        ("word", arrows.word),
    ]
    packed = b"".join(_planes(column) for table in columns.values() for _, column in table)
    plain: dict[str, Any] = {
        "unit": unit,
        "length": timeline.length_us,
        "tracks": [one_line(each) for each in timeline.tracks],
        "words": [one_line(each) for each in timeline.words],
        "gaps": timeline.gaps,
        "goals": [[one_line(each.name), each.begin_us, each.length_us, each.phases] for each in timeline.goals],
        "columns": [[kind, len(table[0][1]), [name for name, _ in table]] for kind, table in columns.items()],
        "packed": base64.b64encode(zlib.compress(packed, 9)).decode("ascii"),
    }
    return to_json(plain, indent=0).replace("<", "\\u003c")


def _differences(values: Numbers) -> Numbers:
    return np.diff(values, prepend=0)


def _planes(column: Numbers) -> bytes:
    """32-bit numbers as planes of bytes, lowest first, because adjacent equal bytes compress best."""
    return np.ascontiguousarray(column.astype("<i4").view(np.uint8).reshape(-1, 4).T).tobytes()
