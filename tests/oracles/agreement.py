"""Compares what we read of a trace with what babeltrace2 reads: every event, every field that both have."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from pytest_ldos.base.errors import TraceUnreadable
from pytest_ldos.trace.ctf.read import DecodedTrace, EventTable, read_trace
from tests.oracles.babeltrace import listening_to_babeltrace

Row = dict[str, Any]


class Outcome(StrEnum):
    EQUAL = "equal"
    BOTH_REFUSE = "both refuse"
    ONLY_WE_REFUSE = "only we refuse"
    ONLY_BABELTRACE_REFUSES = "only babeltrace2 refuses"
    DIFFERENT = "different"


@dataclass(frozen=True)
class Agreement:
    """Relation of two readings of a trace.

    Attributes:
        events: that babeltrace2 gave, also where it gave the trace up in the end.
        ours: our refusal, or what we read and missed.
        theirs: babeltrace2's refusal; empty where it read the trace.
        is_equal_by_stream: true if each stream is equal, and only their order was refused.
        difference: the first one, for readings that are different.
    """

    outcome: Outcome
    events: int
    ours: str = ""
    theirs: str = ""
    difference: str = ""
    is_equal_by_stream: bool = False


def compare_with_babeltrace(directory: Path) -> Agreement:
    """Reads a trace with both."""
    trace, refusal = _read(directory)
    most = 8 * sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    with listening_to_babeltrace(directory) as dictation:
        comparison = Comparison(trace)
        for event in dictation:
            comparison.add(event)
            if comparison.events > most:
                dictation.stop("events of no size, without end")
        comparison.finish()
    theirs = _cause(dictation.refusal[0], directory) if dictation.refusal else ""
    outcome = _outcome(trace, theirs, comparison.difference)
    difference = comparison.difference if outcome is Outcome.DIFFERENT else ""
    by_stream = trace is not None and _UNORDERED in theirs and _is_equal_by_stream(trace, directory)
    return Agreement(outcome, comparison.events, refusal or _described(trace), theirs, difference, by_stream)


_UNORDERED = "timestamp is less than"
_NOISE = re.compile(r":? *[\w-]+=[^,]*,?")


def _cause(message: str, directory: Path) -> str:
    """The first sentence of a refusal, without addresses and numbers."""
    return _NOISE.sub("", message).replace(f"{directory}/", "").replace(str(directory), "the trace").strip()


def _is_equal_by_stream(trace: DecodedTrace, directory: Path) -> bool:
    with listening_to_babeltrace(directory, by_stream=True) as dictation:
        events = sorted(dictation, key=lambda event: event["ns"])
    comparison = Comparison(trace)
    for event in events:
        comparison.add(event)
    comparison.finish()
    return not dictation.refusal and not comparison.difference


def _read(directory: Path) -> tuple[DecodedTrace | None, str]:
    try:
        return read_trace(directory), ""
    except TraceUnreadable as error:
        return None, str(error).splitlines()[0].replace(f"{directory}/", "")


def _described(trace: DecodedTrace | None) -> str:
    assert trace is not None
    losses = [f"{counter.name}: {counter.count}" for counter in trace.stats.counters if counter.count]
    return ", ".join([f"{len(trace)} events", *losses])


def _outcome(trace: DecodedTrace | None, theirs: str, difference: str) -> Outcome:
    if trace is None:
        return Outcome.BOTH_REFUSE if theirs else Outcome.ONLY_WE_REFUSE
    if theirs:
        return Outcome.ONLY_BABELTRACE_REFUSES
    return Outcome.DIFFERENT if difference else Outcome.EQUAL


class Comparison:
    """Takes babeltrace2's events one by one. Those of one name and one moment have no order: they are compared
    as they come, or else as a set."""

    def __init__(self, trace: DecodedTrace | None) -> None:
        self._trace = trace
        self._taken: Counter[str] = Counter()
        self._waiting: dict[str, list[Row]] = {}
        self.events = 0
        self.difference = ""

    def add(self, event: Row) -> None:
        self.events += 1
        if self._trace is None or self.difference:
            return
        name = event["name"] or ""
        waiting = self._waiting.setdefault(name, [])
        if waiting and waiting[0]["ns"] != event["ns"]:
            self._compare(name)
        self._waiting.setdefault(name, []).append(event)

    def finish(self) -> None:
        for name in list(self._waiting):
            if not self.difference:
                self._compare(name)
        if self._trace is not None and not self.difference and self.events != len(self._trace):
            self.difference = f"{len(self._trace)} events here, {self.events} there"

    def _compare(self, name: str) -> None:
        assert self._trace is not None
        events, first = self._waiting.pop(name), self._taken[name]
        self._taken[name] += len(events)
        table = self._trace.events.get(name)
        if table is None or len(table) < first + len(events):
            self.difference = f"event '{name}' number {0 if table is None else len(table)} is not here"
            return
        theirs = [self._known(name, dict(_flat_event(event))) for event in events]
        ours = [_our_row(table, first + i, theirs[i]) for i in range(len(events))]
        if ours != theirs and sorted(map(_text, ours)) != sorted(map(_text, theirs)):
            i = next(i for i in range(len(events)) if ours[i] != theirs[i])
            self.difference = _first_difference(f"event '{name}' number {first + i}", ours[i], theirs[i])

    def _known(self, event: str, row: Row) -> Row:
        """Without the fields of which we say that no column holds them."""
        assert self._trace is not None
        unread = {f"field {name}" for info in self._trace.traces for each, name in info.unread if each == event}
        return {name: value for name, value in row.items() if name not in unread} if unread else row


def _text(row: Row) -> str:
    return json.dumps(row, sort_keys=True, default=str)


def _first_difference(where: str, ours: Row, theirs: Row) -> str:
    name = next(name for name in theirs if ours[name] != theirs[name])
    return f"{where}: {name} is {ours[name]!r} here, {theirs[name]!r} there"


def _flat_event(event: Row) -> Iterator[tuple[str, Any]]:
    """An event as one level of names, in the names of our columns."""
    yield "ns", 0 if event["ns"] is None else event["ns"]
    if event["cpu"] is not None:
        yield "cpu", event["cpu"]
    contexts = dict(flat("", event["context"]))
    for name, value in contexts.items():
        yield f"field {name}", value
    for name, value in flat("", event["payload"]).items():
        yield f"field {'payload_' if name in contexts else ''}{name}", value


def flat(name: str, value: Any) -> Row:
    """A value as our columns have it: members by path, members of elements as lists."""
    if isinstance(value, dict):
        parts = [flat(f"{name}.{member}" if name else member, each) for member, each in value.items()]
        return {key: each for part in parts for key, each in part.items()}
    if not isinstance(value, list):
        return {name: _readable(value)}
    result: Row = {} if value and isinstance(value[0], dict) else {name: []}
    for element in value:
        for key, each in flat(name, element).items():
            result.setdefault(key, []).extend(each if isinstance(each, list) else [each])
    return result


def _readable(value: Any) -> Any:
    """Text of bytes that are no UTF-8 escaped as we do; numbers that are none made comparable."""
    if isinstance(value, str):
        return value.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return str(value) if value != value else value  # noqa: PLR0124 - only NaN is not itself


def _our_row(table: EventTable, row: int, theirs: Row) -> Row:
    found: Row = {"ns": int(table.timestamp_ns[row]), "cpu": int(table.cpu_id[row])}
    for name in theirs:
        if name.startswith("field "):
            found[name] = _our_value(table, name, row, theirs)
    return {name: found[name] for name in theirs}


def _our_value(table: EventTable, field: str, row: int, theirs: Row) -> Any:
    """A column's value; of an empty list of structures, those of its members."""
    name = field.removeprefix("field ")
    if name in table.columns:
        return _readable(table.columns[name][row])
    members = [column[row] for key, column in table.columns.items() if key.startswith(f"{name}.")]
    is_told_by_members = any(key.startswith(f"{field}.") for key in theirs)
    return [] if theirs[field] == [] and members and (is_told_by_members or not any(members)) else "(no column)"
