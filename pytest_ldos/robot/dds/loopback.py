"""Environments in which the DDS sockets of a process receive from this machine only.

Middleware binds to every device: Cyclone DDS (up to 11.0.1) whatever its settings are, Fast DDS where ROS 2
limits discovery to the machine. A preloaded library (``native/loopback.c``) drops everything that arrives from
another device.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest_ldos.robot.dds
from pytest_ldos.base.errors import Unavailable
from pytest_ldos.robot.dds.domain import FIRST_DOMAIN, LAST_DOMAIN, ports_of

_LIBRARY: Final = "libldos_loopback.so"
_PRELOAD: Final = "LD_PRELOAD"
_SEARCH: Final = "LD_LIBRARY_PATH"
_PORTS: Final = "PYTEST_LDOS_LOOPBACK"


def bound_to_loopback() -> Mapping[str, str]:
    """Variables for processes with `loopback_config`: their sockets get a loopback address, on any domain."""
    first, last = ports_of(FIRST_DOMAIN).start, ports_of(LAST_DOMAIN).stop - 1
    return {**_preloaded(_library(), os.environ), _PORTS: f"{first}-{last},address"}


def deaf_to_other_devices(domain: int, environment: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Variables for processes of other middleware on a domain, which may announce any address of this machine.

    Args:
        environment: the environment that they are added to, on top of ours.
    """
    ports = ports_of(domain)
    preloaded = _preloaded(_library(), {**os.environ, **(environment or {})})
    return {**preloaded, _PORTS: f"{ports.start}-{ports.stop - 1}"}


def _preloaded(library: Path, environment: Mapping[str, str]) -> Mapping[str, str]:
    """Variables that preload one more library; `LD_PRELOAD` cannot name a path with spaces."""
    if " " not in str(library):
        return {_PRELOAD: _in_front(str(library), environment.get(_PRELOAD, ""))}
    return {
        _PRELOAD: _in_front(library.name, environment.get(_PRELOAD, "")),
        _SEARCH: _in_front(str(library.parent), environment.get(_SEARCH, "")),
    }


def _in_front(first: str, others: str) -> str:
    return f"{first}:{others}" if others else first


@cache
def _library() -> Path:
    """Path of the library.

    Raises:
        Unavailable: it was not built.
    """
    for folder in map(Path, pytest_ldos.robot.dds.__path__):
        if (folder / _LIBRARY).is_file():
            return folder / _LIBRARY
    raise Unavailable(
        f"pytest-ldos was built without {_LIBRARY}, which keeps DDS on this machine",
        remedy="build it again: make setup, or pip install --force-reinstall",
    )
