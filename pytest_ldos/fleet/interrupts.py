"""Ctrl-C beside processes of ours: it reaches groups of processes, is for whoever started them, and is not lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Ctrl-C waits until the context ends; threads that begin within it, and their processes, never hear of it.

    Raises:
        KeyboardInterrupt: at the end, where somebody pressed it.
    """
    resource_tracker.ensure_running()  # it would let the signal through to the thread that starts it
    with interrupts_noted() as raise_noted:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    raise_noted()


@contextmanager
def interrupts_noted() -> Iterator[Callable[[], None]]:
    """Ctrl-C is noted; what is given raises it. An exception that comes into a finalizer, anywhere, would be lost.

    What is given raises KeyboardInterrupt where somebody pressed it since the context began.
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
