"""Links messages inside a process to their publications, through the subscription's ring buffer.

A publisher puts the message into a slot of the buffer of each subscription. The subscription takes
out of a slot what was put there last.
"""

from __future__ import annotations

import numpy as np

from pytest_ldos.trace.execution.columns import NEVER, IdArray, ids_of, pick, times_of
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.timeline import Clock


def link_buffers(model: ExecutionModel) -> IdArray:
    """Publication of each take, -1 for messages that came through the middleware; shape ``(takes,)``."""
    found = np.full(len(model.takes), -1, dtype=np.int32)
    taken = np.flatnonzero(model.takes["intra"].to_numpy())
    if len(taken) == 0 or len(model.enqueues) == 0:
        return found
    enqueue = _enqueue_of(model, taken)
    found[taken] = pick(_publication_of_enqueues(model), enqueue, -1)
    return found


def _publication_of_enqueues(model: ExecutionModel) -> IdArray:
    """The intra-process publication during which each enqueue happened: the last one on its thread."""
    intra = np.flatnonzero(model.publications["intra_ns"].is_not_null().to_numpy()).astype(np.int32)
    published_ns, enqueued_ns = times_of(model.publications, "intra_ns")[intra], times_of(model.enqueues, "time_ns")
    clock = Clock(published_ns, enqueued_ns)
    timeline = clock.timeline(ids_of(model.publications, "thread")[intra], published_ns)
    last = timeline.last(clock.keys(ids_of(model.enqueues, "thread"), enqueued_ns))
    return pick(intra, last, -1)


def _enqueue_of(model: ExecutionModel, taken: IdArray) -> IdArray:
    """The enqueue that filled the slot each take emptied; an enqueue serves one take only."""
    enqueued_ns, taken_ns = times_of(model.enqueues, "time_ns"), times_of(model.takes, "time_ns")[taken]
    slots = _slots(model, taken)
    put, emptied = slots[: len(enqueued_ns)], slots[len(enqueued_ns) :]
    clock = Clock(enqueued_ns, taken_ns)
    keys = clock.keys(emptied, taken_ns)
    enqueue = clock.timeline(put, enqueued_ns).last(keys)
    emptied_before = clock.timeline(emptied, taken_ns).last(keys, before=True)
    since = pick(taken_ns, emptied_before, NEVER)
    return np.where(pick(enqueued_ns, enqueue, NEVER) > since, enqueue, -1).astype(np.int32)


def _slots(model: ExecutionModel, taken: IdArray) -> IdArray:
    """Process, buffer and slot as one number, for all enqueues and then for the takes."""
    process = ids_of(model.threads, "process")
    columns = [
        np.concatenate((process[ids_of(model.enqueues, "thread")], process[ids_of(model.takes, "thread")[taken]])),
        np.concatenate([model.enqueues["buffer"].to_numpy(), model.takes["buffer"].to_numpy()[taken]]),
        np.concatenate([model.enqueues["slot"].to_numpy(), model.takes["slot"].to_numpy()[taken]]),
    ]
    parts = np.stack([np.unique(column, return_inverse=True)[1] for column in columns], axis=1)
    return np.unique(parts, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int32)
