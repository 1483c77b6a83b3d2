"""Who reads many traces, by the word that a user gave."""

from __future__ import annotations

import importlib.util
import re
from typing import Final

from pytest_ldos.errors import ConfigurationError, Unavailable
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
"""Of processes on one machine."""

INSTALL: Final = "pip install 'pytest-ldos[fleet]'"


def choose_scheduler(word: str | None, *, workers: int | None = None) -> Scheduler:
    """The scheduler of a word; without one, processes of this machine where Dask is installed.

    Args:
        workers: processes of this machine; by default as many as CPUs may be used.

    Raises:
        ConfigurationError: no such scheduler, or none whose processes could be counted.
        Unavailable: Dask, or what its processes here need, is not installed.
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
    """The first that a scheduler needs and that is not installed; empty where all are. None is imported."""
    needed = {**_DASK, **_KEYS} if word == LOCAL else _DASK
    return next((title for name, title in needed.items() if importlib.util.find_spec(name) is None), "")


def _is_address(word: str) -> bool:
    found = _ADDRESS.fullmatch(word)
    return found is not None and 0 < int(found.group(1)) < 2**16
