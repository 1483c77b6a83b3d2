"""The timeline of a trace: tracks of threads, and their picture in a page."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import htpy as h
import numpy as np
import numpy.typing as npt
import polars as pl
from htpy import Node
from markupsafe import Markup

from pytest_ldos.base.text import NS_PER_US, counted, format_duration, one_line
from pytest_ldos.measure.metrics.extract import TrialMetrics
from pytest_ldos.show.page.formats import to_json
from pytest_ldos.show.report.svg import box, line, place, words
from pytest_ldos.show.report.trace_graph import cut
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.scheduling import threads_of_hosts
from pytest_ldos.trace.flow.graph import FlowGraph, Names
from pytest_ldos.trace.flow.summary import STATES, WAITING, states_in_windows

MOST: Final = 120_000  # most slices of one kind; more are merged with their neighbours
_MOST_STATES: Final = 60_000  # most slices of each executor state

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Slices:
    """Slices on tracks, in the order of track and time; `merged` are those merged into others."""

    track: Numbers
    begin_us: Numbers  # from the start of the trace
    length_us: Numbers
    word: Numbers  # index of its name; -1 for none
    merged: int = 0

    def __len__(self) -> int:
        return len(self.track)


@dataclass(frozen=True)
class Arrows:
    """Messages from publication to reception, without those `left_out` because others are at the same position.

    Attributes:
        track, sent_us, topic, node: of each publication at an end of an arrow, by time; `topic` and `node` are words.
        tail, head, taken_us, receiver: index of the message's publication; track, time and node of its reception.
        made: index of a publication made from the message, -1 for none; with several there are several arrows.
    """

    track: Numbers
    sent_us: Numbers
    topic: Numbers
    node: Numbers
    tail: Numbers
    head: Numbers
    taken_us: Numbers
    receiver: Numbers
    made: Numbers
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.tail)


@dataclass(frozen=True)
class GoalSlice:
    name: str
    begin_us: int
    length_us: int
    phases: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Timeline:
    length_us: int
    tracks: tuple[str, ...]
    words: tuple[str, ...]  # names of callbacks and topics
    slices: Mapping[str, Slices]  # by kind: `runs`, `sent`, states of executors, `cpu` (waits for a CPU)
    arrows: Arrows
    goals: tuple[GoalSlice, ...]
    gaps: tuple[tuple[int, int], ...] = ()  # begin and length of disjoint spans with lost events
    without_states: int = 0  # number of threads without executor events


def build_timeline(
    flow: FlowGraph, goals: Mapping[str, TrialMetrics], names: Sequence[str], thread_states: pl.DataFrame | None
) -> Timeline:
    """Builds tracks of all threads that ran a callback, or published or took a message; waits need `thread_states`."""
    return _Builder(flow.model, flow).build(goals, names, thread_states)


class _Builder:
    def __init__(self, model: ExecutionModel, flow: FlowGraph) -> None:
        self._model, self._flow = model, flow
        self._names = Names(model)
        used = [model.callback_runs["thread"], model.publications["thread"], model.takes["thread"]]
        busy = pl.concat([each.cast(pl.Int32) for each in used]).drop_nulls().unique()
        owners = model.processes.select("pid", process="id", owner="name")
        threads = model.threads.filter(pl.col("id").is_in(busy.implode())).join(owners, on="process")
        self._threads = threads.sort("owner", "pid", "tid")
        self._track = np.full(len(model.threads) + 1, -1, dtype=np.int64)
        self._track[self._threads["id"].to_numpy()] = np.arange(len(self._threads))
        self._words: dict[str, int] = {}
        self._begin_ns, self._end_ns = _extent(model)

    def build(
        self, goals: Mapping[str, TrialMetrics], names: Sequence[str], thread_states: pl.DataFrame | None
    ) -> Timeline:
        model = self._model
        runs, sent = model.callback_runs, model.publications.drop_nulls("time_ns")
        callbacks = self._numbered([self._names.callback(each) for each in range(len(model.callbacks))])
        topics = self._numbered([topic or "unknown" for topic in model.publishers["topic"]])
        slices = {
            "runs": self._slices(runs, "start_ns", "end_ns", _pick(callbacks, runs["callback"])),
            "sent": self._slices(sent, "time_ns", "time_ns", _pick(topics, sent["publisher"])),
            **self._states(),
            "cpu": self._cpu_waits(thread_states),
        }
        arrows = self._arrows(topics)
        return Timeline(
            length_us=max((self._end_ns - self._begin_ns) // 1000, 1),
            tracks=tuple(
                f"{row['owner']} {row['pid']}, thread {row['tid']}" for row in self._threads.iter_rows(named=True)
            ),
            words=tuple(self._words),
            slices=slices,
            arrows=arrows,
            goals=tuple(self._goals(goals, names)),
            gaps=tuple(self._gaps()),
            without_states=len(self._threads) - len({row for each in STATES for row in slices[each].track.tolist()}),
        )

    def _numbered(self, names: Sequence[str]) -> Numbers:
        return np.array([self._words.setdefault(name, len(self._words)) for name in names] or [-1], dtype=np.int64)

    def _us(self, times_ns: npt.NDArray[Any]) -> Numbers:
        since: Numbers = (times_ns.astype(np.int64) - self._begin_ns) // 1000
        return since

    def _slices(self, table: pl.DataFrame, begin: str, end: str, word: Numbers | None = None) -> Slices:
        kept = table.with_columns(word=pl.lit(-1) if word is None else pl.Series(word)).drop_nulls(
            [begin, end, "thread"]
        )
        track = self._track[kept["thread"].to_numpy()]
        begin_us, end_us = self._us(kept[begin].to_numpy()), self._us(kept[end].to_numpy())
        return _bounded(track, begin_us, np.maximum(end_us - begin_us, 0), kept["word"].to_numpy().astype(np.int64))

    def _states(self) -> dict[str, Slices]:
        """Slices by state, within the timeline, because merging needs gaps between slices."""
        parts = []
        for states in states_in_windows(self._model):
            spans = states.select("begin_ns", "end_ns")
            begin_us, end_us = map(self._us, (np.clip(each.to_numpy(), self._begin_ns, self._end_ns) for each in spans))
            number = states["state"].replace_strict(list(STATES), list(range(len(STATES))), return_dtype=pl.Int64)
            parts.append((self._track[states["thread"].to_numpy()], begin_us, end_us - begin_us, number.to_numpy()))
        track, begin, length, state = (np.concatenate([each[place] for each in parts]) for place in range(4))
        known, none = track >= 0, np.full(len(track), -1, dtype=np.int64)
        return {
            name: _bounded(
                *(each[known & (state == place)] for each in (track, begin, length, none)), most=_MOST_STATES
            )
            for place, name in enumerate(STATES)
        }

    def _cpu_waits(self, states: pl.DataFrame | None) -> Slices:
        waits = pl.DataFrame() if states is None else states.filter(pl.col("state") == "runnable")
        if not len(waits):
            return _bounded(*(np.zeros(0, dtype=np.int64) for _ in range(4)))
        keys = threads_of_hosts(self._model).join(self._threads.select(thread="id"), on="thread")
        found = waits.with_columns(pl.col("host").cast(pl.String)).join(keys, on=["host", "tid"])
        return self._slices(found, "begin_ns", "end_ns")

    def _arrows(self, topics: Numbers) -> Arrows:
        model = self._model
        sent, taken = (each.drop_nulls(["thread", "time_ns"]) for each in (model.publications, model.takes))
        sent = sent.select("publisher", publication="id", tail="thread", sent="time_ns")
        taken = taken.select("subscription", take="id", head="thread", taken="time_ns")
        joined = self._flow.transport.join(sent, on="publication").join(taken, on="take")
        step = max((self._end_ns - self._begin_ns) // MOST, 1)
        while True:
            place = ["tail", "head", "publisher", pl.col("sent") // step]
            kept = joined.filter(pl.struct(place).is_first_distinct()) if len(joined) > MOST else joined
            if len(kept) <= MOST:
                break
            step *= 2
        uses = self._flow.uses.select("take", made="publication").group_by("take", maintain_order=True).head(8)
        found = kept.join(uses, on="take", how="left")
        used = pl.concat([found["publication"], found["made"].drop_nulls()]).unique().implode()
        ends = sent.filter(pl.col("publication").is_in(used)).sort("sent", "publication").with_row_index("row")
        numbers = ends.select("publication", "row")
        found = found.join(numbers, on="publication").sort("row", "taken")
        following = numbers.rename({"row": "next", "publication": "made"})
        found = found.join(following, on="made", how="left", maintain_order="left")
        senders, receivers = (
            self._numbered([self._names.node(each) for each in table["node"]])
            for table in (model.publishers, model.subscriptions)
        )
        return Arrows(
            track=self._track[ends["tail"].to_numpy()],
            sent_us=self._us(ends["sent"].to_numpy()),
            topic=_pick(topics, ends["publisher"]),
            node=_pick(senders, ends["publisher"]),
            tail=found["row"].to_numpy().astype(np.int64),
            head=self._track[found["head"].to_numpy()],
            taken_us=self._us(found["taken"].to_numpy()),
            receiver=_pick(receivers, found["subscription"]),
            made=found["next"].cast(pl.Int64).fill_null(-1).to_numpy(),
            left_out=len(joined) - len(kept),
        )

    def _gaps(self) -> Iterator[tuple[int, int]]:
        losses = sorted((each.from_ns, each.to_ns) for each in self._model.stats.losses)
        while losses:
            begin_ns, end_ns = losses[0]
            while losses and losses[0][0] <= end_ns:
                end_ns = max(end_ns, losses.pop(0)[1])
            begin, end = self._us(np.clip([begin_ns, end_ns], self._begin_ns, self._end_ns)).tolist()
            yield begin, max(end - begin, 1)

    def _goals(self, goals: Mapping[str, TrialMetrics], names: Sequence[str]) -> Iterator[GoalSlice]:
        for name, trial in zip(names, (each.trial for each in goals.values()), strict=True):
            if trial is not None:
                end_ns = trial.end_ns or max(trial.phases.values(), default=trial.begin_ns)
                begin, end, *ats = self._us(np.array([trial.begin_ns, end_ns, *trial.phases.values()])).tolist()
                phases = sorted(zip(ats, (phase.value for phase in trial.phases), strict=True))
                yield GoalSlice(name, begin, max(end - begin, 1), tuple((phase, at) for at, phase in phases))


def _extent(model: ExecutionModel) -> tuple[int, int]:
    columns = [*model.callback_runs.select("start_ns", "end_ns"), *model.trial_spans.select("begin_ns", "end_ns")]
    columns += [model.publications["time_ns"], model.takes["time_ns"]]
    found = [value for column in columns for value in (column.min(), column.max())]
    times = [int(value) for value in found if isinstance(value, int)]
    return min(times, default=0), max(times, default=0)


def _pick(numbers: Numbers, rows: pl.Series) -> Numbers:
    found = rows.fill_null(-1).to_numpy()
    picked: Numbers = np.where(found >= 0, numbers[np.minimum(found, len(numbers) - 1)], -1)
    return picked


def _bounded(track: Numbers, begin: Numbers, length: Numbers, word: Numbers, *, most: int | None = None) -> Slices:
    """Slices by track and time; if there are too many, neighbours are merged, without a name if names differ."""
    order = np.lexsort((begin, track))
    track, begin, length, word = track[order], begin[order], length[order], word[order]
    near, whole, most = 1, len(track), MOST if most is None else most
    while len(track) > most:
        first = np.ones(len(track), dtype=np.bool_)
        first[1:] = (track[1:] != track[:-1]) | (begin[1:] - (begin + length)[:-1] > near)
        rows = np.flatnonzero(first)
        end, lowest, highest = (
            np.maximum.reduceat(begin + length, rows),
            np.minimum.reduceat(word, rows),
            np.maximum.reduceat(word, rows),
        )
        track, begin, word = track[rows], begin[rows], np.where(lowest == highest, lowest, -1)
        length, near = end - begin, near * 2
    return Slices(track, begin, length, word, merged=whole - len(track))


_WIDTH: Final = 1100.0
_NAMES: Final = 260.0  # width of the names of tracks [px]
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
            [
                h.li[h.span(class_=kind, aria_hidden="true")["■"], meaning]
                for kind, meaning in _KINDS
                if len(timeline.slices[kind])
            ]
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


def anchor_of(goal: int) -> str:
    return f"goal-{goal + 1}"


def describe_timeline(timeline: Timeline) -> Iterator[str]:
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
    if merged := sum(each.merged for each in timeline.slices.values()):
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
        [
            box(_NAMES + begin * scale, top, max(length * scale, 1.0), height - 24 - top, "gap")
            for begin, length in timeline.gaps
        ],
        [_goal(each, number, scale) for number, each in enumerate(timeline.goals)],
        [_track(timeline, number, top, scale) for number in range(len(timeline.tracks))],
        list(_axis(timeline, height, scale)),
    ]


def _goal(goal: GoalSlice, number: int, scale: float) -> Node:
    x, width = _NAMES + goal.begin_us * scale, max(goal.length_us * scale, 2.0)
    label = words(x + 3, 14, cut(goal.name)) if len(cut(goal.name)) * _LETTERS < width else None
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
        words(0, y + 13, cut(name), kind="small"),
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
        yield words(x, height - 4, label, anchor=anchor, kind="small muted")


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
    columns["messages"] = [
        ("track", arrows.track),
        ("sent", _differences(sent)),
        ("topic", arrows.topic),
        ("node", arrows.node),
    ]
    columns["arrows"] = [
        ("tail", _differences(arrows.tail)),
        ("head", arrows.head),
        ("taken", arrows.taken_us // unit - sent[arrows.tail]),
        ("node", arrows.receiver),
        ("made", np.where(arrows.made < 0, 0, arrows.made - arrows.tail)),
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
