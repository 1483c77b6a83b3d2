"""Interface of the schedulers that read traces, and the in-process scheduler.

SIGINT reaches the whole process group, but only the parent process handles it. It is never lost.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import Protocol

from pytest_ldos.fleet.find import Found
from pytest_ldos.fleet.measure import Request, TraceSummary, summarize
from pytest_ldos.trace.execution.build import Spread


class Scheduler(Protocol):
    """Reads and summarises traces."""

    def summarize(self, traces: Sequence[Found], request: Request) -> Iterator[TraceSummary]:
        """Yields one summary per trace, in order of completion. Closing the iterator cancels the remaining work.

        Raises:
            Unavailable: the workers cannot be reached, or cannot read the traces.
        """

    def spreading(self) -> AbstractContextManager[Spread | None]:
        """Function that reads the windows of one trace in the workers; ``None`` if this process reads them.

        Raises:
            Unavailable: the workers cannot be reached, or cannot read the trace.
        """


@dataclass(frozen=True)
class InProcess:
    """See `Scheduler`."""

    def summarize(self, traces: Sequence[Found], request: Request) -> Iterator[TraceSummary]:
        return (summarize(each, request) for each in traces)

    def spreading(self) -> AbstractContextManager[Spread | None]:
        return nullcontext()


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Defers Ctrl-C to the end of the ``with`` block. Threads and processes started in it never receive the signal.

    Raises:
        KeyboardInterrupt: at the end, if Ctrl-C was pressed.
    """
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
