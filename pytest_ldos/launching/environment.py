"""Environment variables for every process of one launch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pytest_ldos.host.inherited import pass_on

_ADDITIONS: list[tuple[Mapping[str, str], Mapping[str, str], Callable[[Any], bool]]] = []
"""Variables of each open recording, our environment when it was opened, and a predicate for its launch contexts."""


@contextmanager
def processes_get(environment: Mapping[str, str], belongs: Callable[[Any], bool]) -> Iterator[None]:
    """Adds variables to the environment of each process whose launch context `belongs`, and to no other.

    These processes inherit what `pass_on` leaves of ours; what launch sets for them stays.

    Several may be open at once, and end in any order.

    An action that sets variables would not suffice: launch keeps them in ``os.environ``, where this process and
    all its other children see them, and it does not pass them to a process with an ``env`` of its own or in a group
    that does not forward the environment (`ResetEnvironment`). Each process gets its environment in
    `Executable.prepare`; launch starts it with that same mapping.
    """
    addition = (environment, dict(os.environ), belongs)
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
        for environment, inherited, belongs in tuple(_ADDITIONS):
            if belongs(context):
                passed_on = pass_on(self.final_env, inherited)
                self.final_env.clear()
                self.final_env.update({**passed_on, **environment})

    prepare.original = original  # type: ignore[attr-defined]
    Executable.prepare = prepare


def _restore() -> None:
    from launch.descriptions import Executable  # noqa: PLC0415 - only where ROS is

    original = getattr(Executable.prepare, "original", None)
    if original is not None:  # otherwise somebody has wrapped ours, which no longer adds anything
        Executable.prepare = original
