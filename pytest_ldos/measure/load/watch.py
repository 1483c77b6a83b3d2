"""Periodic calls for as long as a context lasts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

PERIOD_S: Final = 1.0


@contextmanager
def watched(look: Callable[[], None], *, period_s: float = PERIOD_S) -> Iterator[None]:
    """Calls `look` each period from a thread of its own.

    Raises:
        Exception: the error that `look` raised; it was not called again.
    """
    stopping = threading.Event()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            while not stopping.wait(period_s):
                look()
        except BaseException as error:  # noqa: BLE001 - raised where the context ends
            failures.append(error)

    thread = threading.Thread(target=run, name="watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()
    if failures:
        raise failures[0]
