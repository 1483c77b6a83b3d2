"""SIGTERM that ends a program as Ctrl-C does: it cleans up and keeps its measurements."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

REASON: Final = "the run was ended by SIGTERM"


class Termination:
    """The present effect of SIGTERM."""

    def __init__(self) -> None:
        self._is_settled = False

    def settle(self) -> None:
        """Ignores the signal from now on: only the results are left to write, which takes no time."""
        self._is_settled = True

    def take(self, number: int, frame: FrameType | None) -> None:
        if not self._is_settled:
            raise KeyboardInterrupt(REASON)


@contextmanager
def terminated_like_interrupted() -> Iterator[Termination]:
    """Has SIGTERM raise KeyboardInterrupt while the context lasts; does nothing off the main thread.

    A handler that was installed before stays in place.
    """
    is_ours = (
        threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    termination = Termination()
    if is_ours:
        signal.signal(signal.SIGTERM, termination.take)
    try:
        yield termination
    finally:
        if is_ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
