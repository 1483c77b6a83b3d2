"""Environment variables for every process of one launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_ADDITIONS: list[tuple[Mapping[str, str], Callable[[Any], bool]]] = []
"""Variables of each open recording, and a predicate that is true for its launch contexts."""


@contextmanager
def processes_get(environment: Mapping[str, str], belongs: Callable[[Any], bool]) -> Iterator[None]:
    """Adds variables to the environment of each process whose launch context `belongs`, and to no other.

    Several may be open at once, and end in any order.

    An action that sets variables would not suffice: launch keeps them in ``os.environ``, where this process and
    all its other children see them, and it does not pass them to a process with an ``env`` of its own or in a group
    that does not forward the environment (`ResetEnvironment`). Each process gets its environment in
    `Executable.prepare`; launch starts it with that same mapping.
    """
    addition = (environment, belongs)
    if not _ADDITIONS:
        _patch()
    _ADDITIONS.append(addition)
    try:
        yield
    finally:
        _ADDITIONS.remove(addition)
        if not _ADDITIONS:
            _restore()


def _patch() -> None:
    from launch.descriptions import Executable  # noqa: PLC0415 - only where ROS is

    original = Executable.prepare

    def prepare(self: Any, context: Any, action: Any) -> None:
        original(self, context, action)
        for environment, belongs in tuple(_ADDITIONS):
            if belongs(context):
                self.final_env.update(environment)

    prepare.original = original  # type: ignore[attr-defined]
    Executable.prepare = prepare


def _restore() -> None:
    from launch.descriptions import Executable  # noqa: PLC0415 - only where ROS is

    original = getattr(Executable.prepare, "original", None)
    if original is not None:  # otherwise somebody has wrapped ours, which no longer adds anything
        Executable.prepare = original
