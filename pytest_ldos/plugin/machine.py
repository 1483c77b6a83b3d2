"""Who may measure when: a session holds the machine until it ends, a worker of pytest-xdist for one test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_ldos.host.termination import Termination


def is_worker(config: pytest.Config) -> bool:
    """Whether this process is one of pytest-xdist's workers."""
    return hasattr(config, "workerinput")


class Machine:
    """The machine's lock, as this session uses it.

    Attributes:
        began_ns, ended_ns: when it was held for the last test, Unix time.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._is_shared = is_worker(config)
        self._resources = ExitStack()
        self._is_held = False
        self._termination: Termination | None = None
        self.began_ns = 0
        self.ended_ns = 0

    @contextmanager
    def held(self, announce: Callable[[str], None]) -> Iterator[None]:
        """Nobody else measures here while the context lasts.

        Workers on one machine take turns: each waits for the holder's end. Others are refused.

        Raises:
            MachineBusy: another session measures, and this is no worker.
        """
        from pytest_ldos.host.lock import measuring_lock
        from pytest_ldos.host.termination import terminated_like_interrupted

        with ExitStack() as resources:
            if self._is_shared:
                lock = measuring_lock(on_waiting=lambda holder: announce(f"waiting for {holder}"))
                resources.enter_context(lock)
            elif not self._is_held:
                self._resources.enter_context(measuring_lock())
                self._termination = self._resources.enter_context(terminated_like_interrupted())
                self._is_held = True
            self.began_ns = time.time_ns()
            resources.callback(self._note_end)
            yield

    def _note_end(self) -> None:
        self.ended_ns = time.time_ns()

    def settle(self) -> None:
        """All tests are over: SIGTERM has nothing to interrupt any more."""
        if self._termination is not None:
            self._termination.settle()

    def close(self) -> None:
        self._resources.close()
