"""Schedulers' interface, and traces or their windows as tasks of a Dask client.

SIGINT reaches the whole process group, but only the parent process handles it. It is never lost.
"""

from __future__ import annotations

import queue
import secrets
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any, Final, Protocol

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.fleet.traces import Found, Request, TraceSummary, summarize
from pytest_ldos.trace.ctf.read import WindowedTrace
from pytest_ldos.trace.execution.build import Spread, WindowTask
from pytest_ldos.trace.execution.window_rows import WholeTrace, WindowReader, WindowRows

if TYPE_CHECKING:
    from distributed import Client, Future


class Scheduler(Protocol):
    def summarize(self, traces: Sequence[Found], request: Request) -> Iterator[TraceSummary]:
        """Yields one summary per trace, in order of completion. Closing the iterator cancels the remaining work.

        Raises:
            Unavailable: the workers cannot be reached, or cannot read the traces.
        """

    def spreading(self) -> AbstractContextManager[Spread | None]:
        """Function that reads windows of a trace in the workers; ``None`` to read them here. Raises as `summarize`."""


@dataclass(frozen=True)
class InProcess:
    def summarize(self, traces: Sequence[Found], request: Request) -> Iterator[TraceSummary]:
        return (summarize(each, request) for each in traces)

    def spreading(self) -> AbstractContextManager[Spread | None]:
        return nullcontext()


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


_AHEAD: Final = 2  # number of windows per worker that are submitted in advance; their results wait in memory

_REMEDY: Final = "read it in this process (without --scheduler), or in shorter windows (--window)"


def spread_over(client: Client) -> Spread:
    """Reads the windows of a trace in the workers of a client.

    Raises:
        Unavailable: by the iterator; workers were killed repeatedly, or none is left.
        TraceUnreadable: by the iterator; see `WindowedTrace.read`.
    """

    def read(trace: WindowedTrace, whole: WholeTrace, tasks: Iterator[WindowTask]) -> Iterator[WindowRows]:
        prefix = f"ldos-window-{secrets.token_hex(8)}"  # keys never collide with another client's tasks
        futures: deque[Future] = deque()
        with interrupts_noted() as raise_noted, cancelled_at_end(client, futures):
            # A separate task, which is sent once and recomputed if its worker dies.
            kept = client.submit(tuple, (replace(trace, threads=1), whole), key=f"{prefix}-trace", pure=False)
            for number, task in enumerate(tasks):
                futures.append(client.submit(_read_window, kept, task, key=f"{prefix}-{number}", pure=False))
                while len(futures) > _AHEAD * max(len(client.scheduler_info()["workers"]), 1):
                    yield _rows(client, futures.popleft(), raise_noted)
            while futures:
                yield _rows(client, futures.popleft(), raise_noted)

    return read


def _read_window(kept: tuple[WindowedTrace, WholeTrace], task: WindowTask) -> WindowRows:
    """Runs in the workers."""
    return WindowReader(*kept).read(task.window, task.carried)[0]


def _rows(client: Client, future: Future, raise_noted: Callable[[], None]) -> WindowRows:
    done: queue.SimpleQueue[Future] = queue.SimpleQueue()
    future.add_done_callback(done.put)
    ended = next_done(client, done, raise_noted)
    if ended is None:
        raise Unavailable("no worker is left that could read the trace", remedy=_REMEDY)
    _, status = ended
    killed = "each worker that read a window was killed, or ran out of memory"
    if status == "finished":
        try:
            found = fetch(client, future)
        except LookupError:
            raise Unavailable(killed, remedy=_REMEDY) from None
        assert isinstance(found, WindowRows)
        return found
    if status != "error":
        raise Unavailable("the scheduler ended before the trace was read", remedy=_REMEDY)
    error = future.exception()
    if type(error).__name__ == "KilledWorker":
        raise Unavailable(killed, remedy=_REMEDY) from None
    assert error is not None
    raise error
