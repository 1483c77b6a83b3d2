"""Options that all commands of instruments have: what is to watch the measured processes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.cli.signatures import parameters_of, show_parameters
from pytest_ldos.scenario.watching import WatchSpec
from pytest_ldos.scenario.words import DEFAULT_RATE_HZ, ProfilerKind

_NOWHERE: Final = Path()


@dataclass(frozen=True)
class WatchRequest:
    """Requested observers.

    Attributes:
        folder: for profiles and logs.
    """

    spec: WatchSpec
    folder: Path


_ASKED: ContextVar[WatchRequest | None] = ContextVar("watch", default=None)


def asked_watch() -> WatchRequest | None:
    """The request of the running command; ``None`` if there is none."""
    return _ASKED.get()


def _options(
    *,
    profile: Annotated[
        Path | None,
        typer.Option(
            "--profile", metavar="DIR", help="Sample what the processes do; folder for flame graph and speedscope file."
        ),
    ] = None,
    profiler: Annotated[
        ProfilerKind, typer.Option("--profiler", help="What samples; auto is perf where permitted, else py-spy.")
    ] = ProfilerKind.AUTO,
    profile_rate: Annotated[
        int, typer.Option("--profile-rate", help="Samples a second of each CPU.")
    ] = DEFAULT_RATE_HZ,
    syscalls: Annotated[
        Path | None,
        typer.Option(
            "--syscalls", metavar="DIR", help="Count system calls (distorts all times); folder for the table."
        ),
    ] = None,
) -> WatchRequest | None:
    """See `with_watch_options`; its parameters are the options.

    Raises:
        ConfigurationError: two folders.
    """
    folders = {each for each in (profile, syscalls) if each is not None}
    if len(folders) > 1:
        raise ConfigurationError("--profile and --syscalls name two folders", remedy="name the same for both")
    spec = WatchSpec(
        profile=profile is not None, profiler=profiler, rate_hz=profile_rate, syscalls=syscalls is not None
    )
    return WatchRequest(spec, next(iter(folders), _NOWHERE)) if spec.is_asked else None


def with_watch_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command of an instrument with ``--profile``, ``--profiler``, ``--profile-rate`` and ``--syscalls``."""

    @wraps(command)
    def watched(**arguments: Any) -> None:
        mine = {name: arguments.pop(name) for name in _names()}
        token = _ASKED.set(_options(**mine))
        try:
            command(**arguments)
        finally:
            _ASKED.reset(token)

    show_parameters(watched, [*parameters_of(command), *parameters_of(_options)])
    return watched


def _names() -> list[str]:
    return list(inspect.signature(_options).parameters)
