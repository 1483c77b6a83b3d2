"""SIGTERM that ends a program as Ctrl-C does: everything is tidied up, and what was measured is kept."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

REASON: Final = "the run was ended by SIGTERM"


class Termination:
    """What SIGTERM does now."""

    def __init__(self) -> None:
        self._is_settled = False

    def settle(self) -> None:
        """Has it pass: everything is over but the writing of what was found, which takes no time."""
        self._is_settled = True

    def take(self, number: int, frame: FrameType | None) -> None:
        if not self._is_settled:
            raise KeyboardInterrupt(REASON)


@contextmanager
def terminated_like_interrupted() -> Iterator[Termination]:
    """SIGTERM raises KeyboardInterrupt for as long as the context lasts; does nothing off the main thread.

    Whoever handles the signal already goes on doing so.
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
