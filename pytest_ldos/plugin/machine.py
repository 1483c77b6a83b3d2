"""The machine's lock: a session holds it until it ends, a worker of pytest-xdist for one test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_ldos.host.termination import Termination


def is_worker(config: pytest.Config) -> bool:
    """True if this process is one of pytest-xdist's workers."""
    return hasattr(config, "workerinput")


class Machine:
    """The machine's lock, as this session uses it."""

    def __init__(self, config: pytest.Config) -> None:
        self._is_shared = is_worker(config)
        self._resources = ExitStack()
        self._is_held = False
        self._termination: Termination | None = None

    @contextmanager
    def held(self, announce: Callable[[str], None]) -> Iterator[None]:
        """Holds the machine while the context lasts.

        A worker waits until the machine is free. Another session is refused.

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
            yield

    def settle(self) -> None:
        """Ends the handling of SIGTERM: all tests are over, and nothing is left to interrupt."""
        if self._termination is not None:
            self._termination.settle()

    def close(self) -> None:
        self._resources.close()
