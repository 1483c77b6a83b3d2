"""Windows of one trace as tasks of a Dask client, which are read again if a worker dies."""

from __future__ import annotations

import queue
import secrets
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.fleet.protocol import interrupts_noted
from pytest_ldos.fleet.tasks import cancelled_at_end, fetch, next_done
from pytest_ldos.trace.ctf.windows import WindowedTrace
from pytest_ldos.trace.execution.build import Spread, WindowTask
from pytest_ldos.trace.execution.window_rows import WholeTrace, WindowReader, WindowRows

if TYPE_CHECKING:
    from distributed import Client, Future

_AHEAD: Final = 2
"""Number of windows per worker that are submitted in advance; their results wait in memory."""

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
