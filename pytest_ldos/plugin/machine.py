"""The machine's lock: a session holds it until it ends, a worker of pytest-xdist for one test."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest

from pytest_ldos.base.errors import ConfigurationError

if TYPE_CHECKING:
    from pytest_ldos.host.temporary import Termination


def is_worker(config: pytest.Config) -> bool:
    """True if this process is one of pytest-xdist's workers."""
    return hasattr(config, "workerinput")


class Machine:
    """The machine's lock, as this session uses it."""

    def __init__(self, config: pytest.Config) -> None:
        self._is_shared = is_worker(config)
        self._resources = ExitStack()
        self._is_held = False
        self._tell: Callable[[str], None] = lambda _: None
        self._termination: Termination | None = None

    @contextmanager
    def held(self, announce: Callable[[str], None], *, what: str, wait_s: float) -> Iterator[None]:
        """Holds the machine within the ``with`` block.

        A worker waits until the machine is free.

        Args:
            what: description of the measurement for other sessions.
            wait_s: longest time for which another session waits.

        Raises:
            MachineBusy: another session still measures, and this is not a worker.
            ConfigurationError: a plugin forbids the test to open sockets.
        """
        _require_sockets()
        from pytest_ldos.host.lock import measuring_lock
        from pytest_ldos.host.temporary import terminated_like_interrupted

        def taken(wait_s: float) -> AbstractContextManager[Callable[[str], None]]:
            return measuring_lock(wait_s=wait_s, on_waiting=lambda holder: announce(f"waiting for {holder}"))

        with ExitStack() as resources:
            if self._is_shared:
                self._tell = resources.enter_context(taken(math.inf))
            elif not self._is_held:
                self._tell = self._resources.enter_context(taken(wait_s))
                self._termination = self._resources.enter_context(terminated_like_interrupted())
                self._is_held = True
            self._tell(what)
            yield

    def settle(self) -> None:
        """Stops handling SIGTERM after all tests, when nothing is left to interrupt."""
        if self._termination is not None:
            self._termination.settle()

    def close(self) -> None:
        self._resources.close()


def _require_sockets() -> None:
    """Refuses a test that may not open sockets, which hold the machine's lock and the stack's DDS domain."""
    import socket

    try:
        with warnings.catch_warnings(action="ignore"):
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect("\0ldos-answers-nothing")
    except OSError:
        return
    except Exception as error:  # noqa: BLE001 - a plugin may raise any exception in place of the kernel's errors
        plugin = type(error).__module__
        raise ConfigurationError(
            f"a plugin blocks the sockets by which a measurement holds machine and DDS domain: {plugin}: {error}",
            remedy="mark the test with @pytest.mark.enable_socket, or give --force-enable-socket"
            if plugin == "pytest_socket"
            else "let this test open sockets; those of the stack stay on this machine",
        ) from None
