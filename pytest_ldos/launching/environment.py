"""The environment of every process of one launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def processes_get(environment: Mapping[str, str], belongs: Callable[[Any], bool]) -> Iterator[None]:
    """Adds variables to the environment of each process whose launch context `belongs`, and to no other.

    An action that sets variables would not do: launch keeps them in ``os.environ``, where this process and
    whatever else it starts see them, and a process with an ``env`` of its own or in a group that does not
    forward (`ResetEnvironment`) is started without. Each process gets its environment in
    `Executable.prepare`, and it is the same mapping that it is started with.
    """
    from launch.descriptions import Executable  # noqa: PLC0415 - only where ROS is

    original = Executable.prepare

    def prepare(self: Any, context: Any, action: Any) -> None:
        original(self, context, action)
        if belongs(context):
            self.final_env.update(environment)

    Executable.prepare = prepare
    try:
        yield
    finally:
        Executable.prepare = original
