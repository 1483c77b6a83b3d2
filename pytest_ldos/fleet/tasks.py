"""Traces as tasks of a Dask client: all are submitted at once, and each has a result even if workers fail."""

from __future__ import annotations

import queue
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from pytest_ldos.fleet.find import Found
from pytest_ldos.fleet.measure import Request, TraceSummary, summarize
from pytest_ldos.fleet.protocol import interrupts_noted

if TYPE_CHECKING:
    from distributed import Client, Future

PATIENCE_S: Final = 30.0
"""Time without any worker after which the remaining traces fail."""

_LOOK_S: Final = 0.5
"""Interval of checks for Ctrl-C and workers."""

_MADE_AGAIN: Final = frozenset({"pending", "lost"})
"""Status of a result that is recomputed because its worker died."""


def run_tasks(client: Client, traces: Sequence[Found], request: Request) -> Iterator[TraceSummary]:
    """Yields one summary per trace, in order of completion; remaining tasks are cancelled at the end."""
    done: queue.SimpleQueue[Future] = queue.SimpleQueue()
    prefix = f"ldos-analyze-{secrets.token_hex(8)}"  # keys never collide with another client's tasks
    waiting: dict[str, Found] = {}
    futures: list[Future] = []
    with interrupts_noted() as raise_noted, cancelled_at_end(client, futures):
        for number, trace in enumerate(traces):
            raise_noted()
            future = client.submit(summarize, trace, request, key=f"{prefix}-{number}", pure=False)
            waiting[future.key] = trace
            futures.append(future)
            future.add_done_callback(done.put)
        yield from _gather(client, waiting, done, raise_noted)


@contextmanager
def cancelled_at_end(client: Client, futures: Collection[Future]) -> Iterator[None]:
    """Cancels the remaining tasks of a collection at the end of the ``with`` block."""
    try:
        yield
    finally:
        if client.status == "running":
            client.cancel(list(futures), force=True)


def _gather(
    client: Client, waiting: dict[str, Found], done: queue.SimpleQueue[Future], raise_noted: Callable[[], None]
) -> Iterator[TraceSummary]:
    while waiting:
        ended = next_done(client, done, raise_noted)
        if ended is None:
            yield from (_lost(trace, "no worker is left that could read it") for trace in waiting.values())
            return
        future, status = ended
        yield _answer(client, future, status, waiting.pop(future.key))


def next_done(
    client: Client, done: queue.SimpleQueue[Future], raise_noted: Callable[[], None]
) -> tuple[Future, str] | None:
    """Waits for the next finished task; the tasks' callback is `done.put`.

    Returns:
        The task and its status; ``None`` after `PATIENCE_S` without a worker.
    """
    last_seen_s = time.monotonic()
    while True:
        raise_noted()
        try:
            future = done.get(timeout=_LOOK_S)
        except queue.Empty:
            if _has_workers(client):
                last_seen_s = time.monotonic()
            elif time.monotonic() - last_seen_s > PATIENCE_S:
                return None
            continue
        if (status := str(future.status)) not in _MADE_AGAIN:
            return future, status
        future.add_done_callback(done.put)


def fetch(client: Client, future: Future, *, look_s: float = PATIENCE_S) -> object:
    """The result of a finished task; waits if it is recomputed because its worker died.

    Args:
        look_s: interval of checks if the scheduler still knows the task.

    Raises:
        LookupError: the scheduler forgot the task, for example after a worker died during the transfer of results.
    """
    from distributed import CancelledError

    while True:
        try:
            return future.result(timeout=look_s)
        except CancelledError:
            raise LookupError(future.key) from None
        except TimeoutError:
            if not client.run_on_scheduler(_knows, key=future.key):
                raise LookupError(future.key) from None


def _knows(dask_scheduler: Any, key: str) -> bool:
    """Runs in the scheduler."""
    return key in dask_scheduler.tasks


def _has_workers(client: Client) -> bool:
    """True if a client's scheduler is running and has a worker."""
    return client.status == "running" and bool(client.scheduler_info()["workers"])


def _answer(client: Client, future: Future, status: str, trace: Found) -> TraceSummary:
    if status == "finished":
        try:
            found = fetch(client, future)
        except LookupError:
            return _lost(trace, "the worker that had its result was killed")
        assert isinstance(found, TraceSummary)
        return found
    if status == "error":
        return _lost(trace, _describe(future.exception()))
    return _lost(trace, "the scheduler ended before it was read")


def _describe(error: BaseException | None) -> str:
    if type(error).__name__ == "KilledWorker":
        return "each worker that read it was killed, or ran out of memory"
    return f"{type(error).__name__}: {error}"


def _lost(trace: Found, reason: str) -> TraceSummary:
    return TraceSummary(trace=trace.name, problem=reason)
