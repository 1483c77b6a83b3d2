"""Schedulers' interface, and traces as tasks of a Dask client.

SIGINT reaches the whole process group, but only the parent process handles it. It is never lost.
"""

from __future__ import annotations

import queue
import secrets
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any, Final, Protocol

from pytest_ldos.fleet.traces import Found, Request, TraceSummary, summarize

if TYPE_CHECKING:
    from distributed import Client, Future


class Scheduler(Protocol):
    def summarize(self, traces: Sequence[Found], request: Request) -> Iterator[TraceSummary]:
        """Yields one summary per trace, in order of completion. Closing the iterator cancels the remaining work.

        Raises:
            Unavailable: the workers cannot be reached, or cannot read the traces.
        """


@dataclass(frozen=True)
class InProcess:
    def summarize(self, traces: Sequence[Found], request: Request) -> Iterator[TraceSummary]:
        return (summarize(each, request) for each in traces)


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Raises Ctrl-C at the end of the ``with`` block. Threads and processes started in it never receive the signal."""
    resource_tracker.ensure_running()  # a later start would unblock the signal in the starting thread
    with interrupts_noted() as raise_noted:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    raise_noted()


@contextmanager
def interrupts_noted() -> Iterator[Callable[[], None]]:
    """Records Ctrl-C instead of raising at once, because an exception raised within a finalizer would be lost.

    The yielded function raises KeyboardInterrupt if Ctrl-C was pressed in the ``with`` block.
    """
    heard: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, lambda number, _: heard.append(number)) if is_main else None

    def raise_noted() -> None:
        if heard:
            raise KeyboardInterrupt

    try:
        yield raise_noted
    finally:
        if is_main:
            signal.signal(signal.SIGINT, handler)


PATIENCE_S: Final = 30.0  # time without any worker after which the remaining traces fail

_LOOK_S: Final = 0.5  # interval of checks for Ctrl-C and workers

_MADE_AGAIN: Final = frozenset({"pending", "lost"})  # status of a result that is recomputed because its worker died


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
        while waiting:
            ended = next_done(client, done, raise_noted)
            if ended is None:
                problem = "no worker is left that could read it"
                yield from (TraceSummary(trace=trace.name, problem=problem) for trace in waiting.values())
                return
            future, status = ended
            yield _answer(client, future, status, waiting.pop(future.key))


@contextmanager
def cancelled_at_end(client: Client, futures: Collection[Future]) -> Iterator[None]:
    try:
        yield
    finally:
        if client.status == "running":
            client.cancel(list(futures), force=True)


def next_done(
    client: Client, done: queue.SimpleQueue[Future], raise_noted: Callable[[], None]
) -> tuple[Future, str] | None:
    """Waits for the next task that calls `done.put`, and its status; ``None`` after `PATIENCE_S` without a worker."""
    last_seen_s = time.monotonic()
    while True:
        raise_noted()
        try:
            future = done.get(timeout=_LOOK_S)
        except queue.Empty:
            if client.status == "running" and client.scheduler_info()["workers"]:
                last_seen_s = time.monotonic()
            elif time.monotonic() - last_seen_s > PATIENCE_S:
                return None
            continue
        if (status := str(future.status)) not in _MADE_AGAIN:
            return future, status
        future.add_done_callback(done.put)


def fetch(client: Client, future: Future) -> object:
    """The result of a finished task, recomputed if its worker died; raises `LookupError` if that never happens."""
    from distributed import CancelledError

    was_idle = False
    while True:
        try:
            return future.result(timeout=PATIENCE_S)
        except CancelledError:
            raise LookupError(future.key) from None
        except TimeoutError:
            state, is_idle = client.run_on_scheduler(_state_of, key=future.key)
            if state is None or (was_idle and is_idle and state != "memory"):
                raise LookupError(future.key) from None
            was_idle = is_idle


def _state_of(dask_scheduler: Any, key: str) -> tuple[str | None, bool]:
    """State of a task, None if it was forgotten, and True if no worker has a task. Runs in the scheduler."""
    task = dask_scheduler.tasks.get(key)
    return task and task.state, not any(each.processing for each in dask_scheduler.workers.values())


def _answer(client: Client, future: Future, status: str, trace: Found) -> TraceSummary:
    if status == "finished":
        try:
            found = fetch(client, future)
        except LookupError:
            problem = "the worker that had its result was killed"
        else:
            assert isinstance(found, TraceSummary)
            return found
    elif status == "error":
        error = future.exception()
        problem = f"{type(error).__name__}: {error}"
        if type(error).__name__ == "KilledWorker":
            problem = "each worker that read it was killed, or ran out of memory"
    else:
        problem = "the scheduler ended before it was read"
    return TraceSummary(trace=trace.name, problem=problem)
