"""Chooses a scheduler from the user's `--scheduler` value."""

from __future__ import annotations

import importlib.util
import re
from typing import Final

from pytest_ldos.base.errors import ConfigurationError, Unavailable
from pytest_ldos.fleet.cluster import LocalCluster
from pytest_ldos.fleet.in_process import InProcess
from pytest_ldos.fleet.protocol import Scheduler
from pytest_ldos.fleet.remote import RemoteScheduler
from pytest_ldos.host.affinity import our_cpus

LOCAL: Final = "local"
SYNCHRONOUS: Final = "synchronous"
_ADDRESS: Final = re.compile(r"(?:tcp|tls)://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")
_REMEDY: Final = "use 'local' (processes of this machine), 'synchronous' (this process), or tcp://HOST:PORT"
_DASK: Final = {"dask": "Dask", "distributed": "Dask's scheduler (distributed)"}
_KEYS: Final = {"cryptography": "cryptography"}
"""Required only for worker processes on this machine."""

INSTALL: Final = "pip install 'pytest-ldos[fleet]'"


def choose_scheduler(word: str | None, *, workers: int | None = None) -> Scheduler:
    """The scheduler of this name or address; by default processes on this machine, if Dask is installed.

    Args:
        workers: number of processes on this machine; by default the number of usable CPUs.

    Raises:
        ConfigurationError: unknown scheduler, or `workers` given for a scheduler other than ``local``.
        Unavailable: Dask, or a package for local processes, is not installed.
    """
    kept = (SYNCHRONOUS if missing_package(LOCAL) and workers is None else LOCAL) if word is None else word
    if workers is not None and kept != LOCAL:
        raise ConfigurationError(
            f"--workers belongs to --scheduler local, not to {kept}",
            remedy="leave it out: this process is one, and a scheduler elsewhere has the workers that it has",
        )
    if kept == SYNCHRONOUS:
        return InProcess()
    is_address = _is_address(kept)
    if kept != LOCAL and not is_address:
        raise ConfigurationError(f"unknown scheduler {kept!r}", remedy=_REMEDY)
    missing = missing_package(kept)
    if missing:
        raise Unavailable(f"{missing} is not installed", remedy=f"{INSTALL}, or use --scheduler synchronous")
    return RemoteScheduler(kept) if is_address else LocalCluster(workers or len(our_cpus()))


def missing_package(word: str) -> str:
    """The first package that a scheduler needs and that is not installed; empty if all are. Imports none of them."""
    needed = {**_DASK, **_KEYS} if word == LOCAL else _DASK
    return next((title for name, title in needed.items() if importlib.util.find_spec(name) is None), "")


def _is_address(word: str) -> bool:
    found = _ADDRESS.fullmatch(word)
    return found is not None and 0 < int(found.group(1)) < 2**16
