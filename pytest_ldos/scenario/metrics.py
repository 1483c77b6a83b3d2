"""Metrics, each a text ``KIND:SUBJECT[:STATISTIC]`` in the list ``metrics``, and deadlines in a project's settings."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from pytest_ldos.base.errors import ConfigurationError, require, suggest
from pytest_ldos.base.ros2 import OwnEvent, PathSpec
from pytest_ldos.base.series import Better
from pytest_ldos.base.text import NS_PER_MS
from pytest_ldos.scenario.fields import build_spec
from pytest_ldos.scenario.stimuli import StimulusSpec

WHERE: Final = "[tool.ldos] metrics"
EVERY_PROCESS: Final = "*"
OF_NODE: Final = "node:"
"""Beginning of a subject that names a process by a node in it."""


class MetricKind(StrEnum):
    """Kind of a metric in the settings.

    ``PATH``: latency of passages along a causal path. ``RATE``, ``GAP``: mean rate of publications on a topic, and the
    longest time without one. ``CPU``, ``MEMORY``, ``SWITCHES``, ``FAULTS``: CPU time, peak memory, context switches and
    page faults of processes of the stack. ``UPDATE``, ``JITTER``: duration of one update of a controller or a hardware
    component, and the spread of the periods between them, as ros2_control's controller manager says. ``NUMBER``: a
    number that the stimulus reports of each trial. ``SPAN``, ``INTERVAL``, ``VALUE``, ``COUNT``, of the project's own
    tracepoints: time from one event to another, time between two of the same, a field, and number of events. ``TOPIC``:
    a number in the messages of a topic.
    ``ALLOCATIONS``, ``FREES``, ``LOCKS``, ``BLOCKED``, also ``FAULTS``, of a control cycle or a callback's run: none.
    """

    PATH = "path"
    RATE = "rate"
    GAP = "gap"
    CPU = "cpu"
    MEMORY = "memory"
    SWITCHES = "switches"
    FAULTS = "faults"
    UPDATE = "update"
    JITTER = "jitter"
    NUMBER = "number"
    SPAN = "span"
    INTERVAL = "interval"
    VALUE = "value"
    COUNT = "count"
    TOPIC = "topic"
    ALLOCATIONS = "allocations"
    FREES = "frees"
    LOCKS = "locks"
    BLOCKED = "blocked"

    @property
    def example(self) -> str:
        if self is MetricKind.PATH:
            return "NAME OF A PATH:p99"
        if self in _OF_EVENTS:
            return _OF_EVENTS[self][0]
        if self.is_of_topic:
            return "/topic"
        if self.is_of_process or self in EVIDENCE:
            return "PROCESS" if self.is_of_process else CONTROL_LOOP
        return "CONTROLLER" if self.is_of_loop else "NAME"

    @property
    def is_of_topic(self) -> bool:
        return self in (MetricKind.RATE, MetricKind.GAP)

    @property
    def is_of_process(self) -> bool:
        """True if it is read from the kernel during a trial, so that it is not in a trace."""
        return self in (MetricKind.CPU, MetricKind.MEMORY, MetricKind.SWITCHES, MetricKind.FAULTS)

    @property
    def is_of_loop(self) -> bool:
        """True if the controller manager publishes it during a trial."""
        return self in (MetricKind.UPDATE, MetricKind.JITTER)

    @property
    def is_in_traces(self) -> bool:
        """True if it can be extracted from a trace alone."""
        return self is not MetricKind.TOPIC and (self is MetricKind.PATH or self.is_of_topic or self in _OF_EVENTS)


class Statistic(StrEnum):
    """Statistic of a trial's passages, spans, intervals or values; misses are passages above the path's deadline."""

    P50 = "p50"
    P90 = "p90"
    P99 = "p99"
    MAX = "max"
    MISSES = "misses"


_NAME: Final = r"[^\s:,*\[\]]+"
_EVENT: Final = rf"({_NAME}:{_NAME})"
_MATCHING: Final = rf"{_EVENT}(?:\[({_NAME}(?:,{_NAME})*)\])?"
_OF_EVENTS: Final = {  # an example, and a pattern with two groups for each event, or the topic: name and fields
    MetricKind.SPAN: ("my_pkg:begin:my_pkg:end:p50", f"{_MATCHING}:{_MATCHING}"),
    MetricKind.INTERVAL: ("my_pkg:tick:p99", _MATCHING),
    MetricKind.VALUE: ("my_pkg:solve:cost:max", f"{_EVENT}:({_NAME})"),
    MetricKind.COUNT: ("my_pkg:retry", f"{_EVENT}()"),
    MetricKind.TOPIC: ("/planner/debug/processing_time_ms:data:p99", rf"(/{_NAME}):({_NAME})"),
}


CONTROL_LOOP: Final = "control loop"
LIBRARIES: Final = "lttng_ust_statedump:bin_info"  # event with the place of a library in a process
_ALLOCATE: Final = ("malloc", "calloc", "realloc", "memalign", "posix_memalign")
EVIDENCE: Final = {  # events of each kind of metric of a place
    MetricKind.ALLOCATIONS: tuple(f"lttng_ust_libc:{name}" for name in _ALLOCATE),
    MetricKind.FREES: ("lttng_ust_libc:free",),
    MetricKind.LOCKS: ("lttng_ust_pthread:pthread_mutex_lock_req",),
    MetricKind.FAULTS: ("perf_faults:page-faults",),
    MetricKind.BLOCKED: ("perf_blocked:sched_switch",),
}
_PLACE: Final = re.compile(rf"({CONTROL_LOOP}|/\S+: .*?[^:])(:any)?")


def place_of(text: str) -> tuple[str, bool]:
    """The place of a metric, empty if it has none, and True unless ``:any`` follows: the metric is expected to be 0."""
    kind, _, subject = text.partition(":")
    found = _PLACE.fullmatch(subject) if kind in EVIDENCE else None
    return (found[1], not found[2]) if found else ("", False)


@dataclass(frozen=True, kw_only=True)
class MetricSpec:
    """A metric of a path, a topic, a process, a control loop or own tracepoints, or a number of the stimulus.

    Attributes:
        subject: name of a path; topic; name or pattern of processes (``move_group``, ``planner_*``, ``*``) or a node in
            one (``node:/planner``), which may be followed by ``/`` and the name of threads; name of a controller or a
            hardware component; name of a number; own events; topic and field; ``control loop`` or a callback, also with
            ``:any``.
        statistic: of passages, spans, intervals or values; ``None`` for other kinds.
        path: the path named by `subject`; ``None`` for other kinds.
        better: better direction of a number, a value or a count.
        events: own events named by `subject`; those of a span on one thread match by ``vtid``.
    """

    kind: MetricKind
    subject: str
    statistic: Statistic | None = None
    path: PathSpec | None = None
    better: Better = Better.LOWER
    events: tuple[OwnEvent, ...] = ()

    def __post_init__(self) -> None:
        require((self.path is not None) is (self.kind is MetricKind.PATH), f"metric '{self}' needs the path it is of")
        require(
            not self.kind.is_of_topic or self.subject.startswith("/"),
            f"metric '{self}' names no topic",
            remedy=f"write the full topic: '{self.kind}:/{self.subject}'",
        )
        require(
            self.statistic is not Statistic.MISSES or (self.path is not None and self.path.deadline_ms is not None),
            f"metric '{self}' counts misses of a deadline, and path '{self.subject}' has none",
            remedy=f"give path '{self.subject}' a deadline_ms in [[tool.ldos.paths]]",
        )
        require(
            not self.thread or self.kind is not MetricKind.MEMORY,
            f"metric '{self}' asks for the memory of a thread",
            remedy="threads of a process share its memory: leave out what follows the last /",
        )

    def __str__(self) -> str:
        higher = Better.HIGHER if self.better is Better.HIGHER else ""
        return ":".join(part for part in (self.kind, self.subject, self.statistic, higher) if part)

    @property
    def name(self) -> str:
        """Identifier in records: ``cpu_move_group``, ``path_state_feedback_p99``."""
        words = (self.place or self.subject).replace("*", " all ").replace("?", " any ")
        return re.sub(r"[^A-Za-z0-9]+", "_", f"{self.kind} {words} {self.statistic or ''}").strip("_")

    @property
    def place(self) -> str:
        """`CONTROL_LOOP`, or the name of a callback; empty for other kinds."""
        return place_of(f"{self.kind}:{self.subject}")[0]

    @property
    def process(self) -> str:
        """Name or pattern; empty for other kinds."""
        return self._process_and_thread[0]

    @property
    def thread(self) -> str:
        """Name or pattern; empty for all threads."""
        return self._process_and_thread[1]

    @property
    def node(self) -> str:
        return self.process.removeprefix(OF_NODE) if self.process.startswith(OF_NODE) else ""

    @property
    def _process_and_thread(self) -> tuple[str, str]:
        if not self.kind.is_of_process or self.place:
            return "", ""
        if self.subject.startswith(OF_NODE):
            return self.subject, ""
        process, _, thread = self.subject.partition("/")
        return process, thread


def usual_metrics(stimulus: StimulusSpec, paths: Sequence[PathSpec]) -> tuple[str, ...]:
    """Default metrics of a project, by its stimulus and its own paths.

    For a bag and a window, these are the latencies of the project's own paths, and CPU time and memory of all
    processes. Other stimuli have built-in metrics instead, because each additional comparison reduces the power of the
    others.
    """
    if stimulus.latencies:
        return ()
    latencies = [f"{MetricKind.PATH}:{path.name}:{statistic}" for path in paths for statistic in ("p50", "p99")]
    return (*latencies, f"{MetricKind.CPU}:{EVERY_PROCESS}", f"{MetricKind.MEMORY}:{EVERY_PROCESS}")


def parse_metrics(values: Any, paths: Sequence[PathSpec], *, where: str = WHERE) -> tuple[MetricSpec, ...]:
    """Parses a list of metrics.

    Raises:
        ConfigurationError: not a list of texts, an unknown kind, path or statistic (the nearest is named), or a
            duplicate metric.
    """
    if not isinstance(values, list | tuple) or not all(isinstance(each, str) for each in values):
        raise ConfigurationError(f"{where} is {values!r}", remedy='write a list of texts: ["cpu:move_group"]')
    specs = tuple(_parse(each, paths, where) for each in values)
    by_name: dict[str, MetricSpec] = {}
    for spec in specs:
        other = by_name.setdefault(spec.name, spec)
        require(
            other is spec,
            f"{where}: '{other}' and '{spec}' would both be recorded as {spec.name}",
            remedy="leave out one of them",
        )
    return specs


def _parse(text: str, paths: Sequence[PathSpec], where: str) -> MetricSpec:
    kind, _, subject = text.partition(":")
    if kind not in set(MetricKind):
        known = f"{suggest(kind, list(MetricKind))}; a metric is KIND:SUBJECT, such as 'cpu:move_group'"
        raise ConfigurationError(f"{where}: '{text}' does not begin with a kind of metric", remedy=known)
    require(
        bool(subject),
        f"{where}: '{text}' names nothing to measure",
        remedy=f"write '{kind}:{MetricKind(kind).example}'",
    )
    try:
        match MetricKind(kind):
            case MetricKind.PATH:
                return _of_path(subject, paths)
            case MetricKind.NUMBER:
                return _of_number(subject)
        if kind in _OF_EVENTS:
            return _of_events(MetricKind(kind), subject)
        is_in_place = bool(place_of(text)[0])
        require(
            is_in_place or kind == MetricKind.FAULTS or kind not in EVIDENCE,
            f"metric '{text}' names neither the control loop nor a callback",
            remedy=f"write '{kind}:{CONTROL_LOOP}' or '{kind}:/node: /topic'",
        )
        names = [*EVIDENCE[MetricKind(kind)], LIBRARIES] if is_in_place else []
        return MetricSpec(kind=MetricKind(kind), subject=subject, events=tuple(map(OwnEvent, names)))
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error.message}", remedy=error.remedy) from None


def _of_path(subject: str, paths: Sequence[PathSpec]) -> MetricSpec:
    by_name = {path.name: path for path in paths}
    name, _, statistic = (subject, "", Statistic.P99) if subject in by_name else subject.rpartition(":")
    if name not in by_name:
        unknown = name if statistic in {*Statistic, _MEDIAN} else subject
        raise ConfigurationError(f"metric 'path:{subject}' does not name a path", remedy=suggest(unknown, by_name))
    found = _statistic(f"path:{subject}", statistic, list(Statistic))
    return MetricSpec(kind=MetricKind.PATH, subject=name, statistic=found, path=by_name[name])


def _of_events(kind: MetricKind, subject: str) -> MetricSpec:
    text = f"{kind}:{subject}"
    found = re.match(rf"{_OF_EVENTS[kind][1]}(?=:|$)", subject)
    if not found:
        event = "an event is PROVIDER:NAME, in a span or an interval also PROVIDER:NAME[FIELD,FIELD]"
        what, form = ("its events", event) if kind.is_in_traces else ("topic and field", "a field may be point.x")
        remedy = f"write '{kind}:{kind.example}'; {form}"
        raise ConfigurationError(f"metric '{text}' does not name {what}", remedy=remedy)
    names, texts = found.groups()[::2], found.groups()[1::2]
    usual = ("vtid",) if kind is MetricKind.SPAN and not any(texts) else ()
    events = tuple(
        OwnEvent(name, tuple(each.split(",")) if each else usual) for name, each in zip(names, texts, strict=True)
    )
    require(
        len({len(each.fields) for each in events}) == 1,
        f"metric '{text}' matches different numbers of fields",
        remedy="name the same number for begin and end, in the same order: 'span:a:begin[id]:a:end[id]'",
    )
    require(
        len(set(names)) == len(names),
        f"metric '{text}' begins and ends with the same event",
        remedy=f"for the time from one to the next: 'interval:{names[0]}'",
    )
    words = subject[found.end() :].split(":")[1:]
    has_direction = kind in (MetricKind.VALUE, MetricKind.COUNT, MetricKind.TOPIC)
    better = Better(words.pop()) if has_direction and words and words[-1] in set(Better) else Better.LOWER
    statistic = None
    if kind is not MetricKind.COUNT:
        known = [each for each in Statistic if each is not Statistic.MISSES]
        statistic = _statistic(text, words.pop(0) if words else Statistic.P50, known)
    last = "a count has no statistic" if statistic is None else "a statistic is the last part"
    require(
        not words,
        f"metric '{text}' ends in '{':'.join(words)}'",
        remedy=f"leave it out: {last}{', and higher may follow' if has_direction else ''}",
    )
    of_trace = events if kind.is_in_traces else ()
    return MetricSpec(kind=kind, subject=found[0], statistic=statistic, better=better, events=of_trace)


_MEDIAN: Final = "median"  # another name of p50


def _statistic(text: str, word: str, known: Sequence[Statistic]) -> Statistic:
    word = Statistic.P50 if word == _MEDIAN else word
    if word not in known:
        raise ConfigurationError(f"metric '{text}' has an unknown statistic '{word}'", remedy=suggest(word, known))
    return Statistic(word)


def _of_number(subject: str) -> MetricSpec:
    name, _, better = subject.partition(":")
    if better and better not in set(Better):
        raise ConfigurationError(
            f"metric 'number:{subject}' says '{better}' of what is better", remedy=suggest(better, list(Better))
        )
    return MetricSpec(kind=MetricKind.NUMBER, subject=name, better=Better(better or Better.LOWER))


@dataclass(frozen=True, kw_only=True)
class DeadlineSpec:
    """An expected deadline.

    Attributes:
        path: name of a path, declared or built in.
        ms: limit of its latency.
        share: of a trial's passages that must meet the limit.
    """

    path: str
    ms: float
    share: float = 0.99

    def __post_init__(self) -> None:
        require(0 < self.ms < math.inf, f"the deadline of path {self.path!r} must be above 0 and finite")
        require(0 < self.share <= 1, f"share of the deadline of path {self.path!r} must be above 0 and at most 1")

    @property
    def ns(self) -> int:
        return round(self.ms * NS_PER_MS)


def parse_deadlines(table: Any, where: str) -> tuple[DeadlineSpec, ...]:
    """Parses a table of deadlines by path: milliseconds, or a table with ``ms`` and ``share``."""
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{where} deadlines is {table!r}", remedy='write "NAME OF PATH" = MILLISECONDS')
    return tuple(
        build_spec(
            DeadlineSpec,
            {**(values if isinstance(values, Mapping) else {"ms": values}), "path": path},
            f"{where} deadlines {path!r}",
        )
        for path, values in table.items()
    )
