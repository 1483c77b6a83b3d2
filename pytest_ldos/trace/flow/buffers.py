"""Links messages inside a process to their publications, through the subscription's ring buffer.

A publisher puts the message into a slot of the buffer of each subscription. The subscription takes
out of a slot what was put there last.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from pytest_ldos.trace.execution.columns import NEVER, IdArray, ids_at, ids_of, pick, rows_of, times_at, times_of
from pytest_ldos.trace.execution.mapped import Array, Growing, chunks, computed, filled
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.timeline import Clock


def link_buffers(model: ExecutionModel) -> IdArray:
    """Publication of each take, -1 for messages that came through the middleware; shape ``(takes,)``."""
    found = filled(len(model.takes), np.int32, -1)
    taken = _rows_where(model.takes["intra"])
    if len(taken) == 0 or len(model.enqueues) == 0:
        return found
    enqueue, publication = _enqueue_of(model, taken), _publication_of_enqueues(model)
    for part in chunks(len(taken)):
        found[taken[part]] = pick(publication, enqueue[part], -1)
    return found


def _rows_where(column: pl.Series) -> IdArray:
    """Rows in which a column is true."""
    rows = Growing(np.int32)
    for part in chunks(len(column)):
        rows.add(np.flatnonzero(column.slice(part.start, part.stop - part.start).to_numpy()) + part.start)
    return rows.finish()


def _publication_of_enqueues(model: ExecutionModel) -> IdArray:
    """The intra-process publication during which each enqueue happened: the last one on its thread."""
    intra = _rows_where(model.publications["intra_ns"].is_not_null())
    published_ns = computed(len(intra), np.int64, lambda part: times_at(model.publications, "intra_ns", intra[part]))
    publisher = computed(len(intra), np.int32, lambda part: ids_at(model.publications, "thread", intra[part]))
    thread, enqueued_ns = ids_of(model.enqueues, "thread"), times_of(model.enqueues, "time_ns")
    clock = Clock(published_ns, enqueued_ns)
    timeline = clock.timeline(publisher, published_ns)

    def last(part: slice) -> IdArray:
        return pick(intra, timeline.last(clock.keys(thread[part], enqueued_ns[part])), -1)

    return computed(len(enqueued_ns), np.int32, last)


def _enqueue_of(model: ExecutionModel, taken: IdArray) -> IdArray:
    """The enqueue that filled the slot each take emptied; an enqueue serves one take only."""
    enqueued_ns = times_of(model.enqueues, "time_ns")
    taken_ns = computed(len(taken), np.int64, lambda part: times_at(model.takes, "time_ns", taken[part]))
    put, emptied = _slots(model, taken)
    clock = Clock(enqueued_ns, taken_ns)
    filling, emptying = clock.timeline(put, enqueued_ns), clock.timeline(emptied, taken_ns)

    def filled_by(part: slice) -> IdArray:
        keys = clock.keys(emptied[part], taken_ns[part])
        enqueue, since = filling.last(keys), pick(taken_ns, emptying.last(keys, before=True), NEVER)
        return np.where(pick(enqueued_ns, enqueue, NEVER) > since, enqueue, -1).astype(np.int32)

    return computed(len(taken), np.int32, filled_by)


def _slots(model: ExecutionModel, taken: IdArray) -> tuple[IdArray, IdArray]:
    """Process, buffer and slot as one number, of all enqueues and of the takes."""
    process = ids_of(model.threads, "process")

    def columns(number: int, part: slice) -> list[Array]:
        table = rows_of(model.enqueues, part) if number == 0 else model.takes[taken[part]]
        return [process[ids_of(table, "thread")], table["buffer"].to_numpy(), table["slot"].to_numpy()]

    rows = (len(model.enqueues), len(taken))
    every = [(number, part) for number in range(2) for part in chunks(rows[number])]
    known = [_distinct(columns(*each)[at] for each in every) for at in range(3)]

    def codes(number: int, part: slice) -> Array:
        places = [np.searchsorted(*pair) for pair in zip(known, columns(number, part), strict=True)]
        code: Array = (places[0] * len(known[1]) + places[1]) * len(known[2]) + places[2]
        return code

    kept = _distinct(codes(*each) for each in every)
    return (
        computed(rows[0], np.int32, lambda part: np.searchsorted(kept, codes(0, part))),
        computed(rows[1], np.int32, lambda part: np.searchsorted(kept, codes(1, part))),
    )


def _distinct(parts: Iterable[Array]) -> Array:
    """Different values of all parts, in order."""
    return np.unique(np.concatenate([np.unique(part) for part in parts]))
