"""Dask schedulers for ``--scheduler``: on this machine, or started by the user."""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import logging
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pytest_ldos.base.errors import ConfigurationError, Unavailable
from pytest_ldos.base.text import one_line
from pytest_ldos.fleet.tasks import InProcess, Scheduler, interrupts_wait, run_tasks
from pytest_ldos.fleet.traces import Found, Request, TraceSummary
from pytest_ldos.host.cpu import our_cpus
from pytest_ldos.host.temporary import temporary_folder
from pytest_ldos.trace.ctf.files import address_of
from pytest_ldos.trace.ctf.read import THREADS_VARIABLE

if TYPE_CHECKING:
    from distributed import Client


_SETTINGS: Final[dict[str, Any]] = {
    "distributed.scheduler.allowed-failures": 2,
    "distributed.scheduler.http.routes": [],
    "distributed.scheduler.worker-saturation": 1.0,
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
}
_ONE_THREAD: Final = {THREADS_VARIABLE: "1", "POLARS_MAX_THREADS": "1"}
"""One thread per worker, because each worker is a process with its own CPU."""


@dataclass(frozen=True)
class LocalCluster:
    """A `Scheduler` of `workers` processes on this machine, at most one per trace."""

    workers: int

    def summarize(self, traces: Sequence[Found], request: Request) -> Iterator[TraceSummary]:
        with connected_cluster(min(self.workers, max(len(traces), 1))) as client:
            yield from run_tasks(client, traces, request)


@contextmanager
def connected_cluster(workers: int) -> Iterator[Client]:
    """Client of a local cluster with this many processes, which end with the ``with`` block."""
    import dask
    import distributed

    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder("ldos-analyze-"))
        stack.enter_context(dask.config.set({**_SETTINGS, "temporary-directory": str(folder)}))
        with interrupts_wait():
            cluster = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    security=True,
                    dashboard_address=None,
                    scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                    silence_logs=logging.CRITICAL,
                    local_directory=str(folder),
                    env=_ONE_THREAD,
                )
            )
            client = stack.enter_context(distributed.Client(cluster, set_as_default=False))
        yield client


_PACKAGE: Final = "pytest-ldos"

Description = tuple[str, str, list[str]]
"""A worker's version of this package (empty if not installed), host name, and missing paths."""


def require_able_workers(client: Client, address: str, paths: Sequence[str], *, limit_s: float) -> None:
    """Raises `Unavailable` for workers with another version of Python or of this package, or that do not see a path."""
    try:
        client.wait_for_workers(1, timeout=limit_s)
    except TimeoutError:
        raise Unavailable(
            f"the scheduler at {address} has no worker",
            remedy=f"start some where the traces are: dask worker {address}",
        ) from None
    # Functions are sent as byte code.
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = {each["host"]["python"] for each in client.get_versions()["workers"].values()}
    others = sorted(version for version in found if version.split(".")[:2] != ours.split("."))
    if others:
        raise Unavailable(
            f"workers at {address} run Python {', '.join(map(one_line, others))}, this is Python {ours}",
            remedy="start them with the same version of Python",
        )
    faults = dict.fromkeys(_faults(client.run(_question(), list(paths), on_error="return")))
    if faults:
        raise Unavailable(
            f"workers at {address} cannot do this: {'; '.join(map(one_line, faults))}",
            remedy=f"give them {_PACKAGE} {importlib.metadata.version(_PACKAGE)} and storage that all machines share, "
            "or use --scheduler local",
        )


def _question() -> Callable[[list[str]], Description]:
    """A function that is serialized by value, because a worker may have no or another version of this module."""

    def describe(paths: list[str]) -> Description:
        import importlib.metadata
        import socket
        from pathlib import Path

        try:
            version = importlib.metadata.version("pytest-ldos")
        except importlib.metadata.PackageNotFoundError:
            version = ""
        return version, socket.gethostname(), [path for path in paths if not Path(path).exists()]

    return describe


def _faults(answers: dict[str, Description | Exception]) -> Iterator[str]:
    ours = importlib.metadata.version(_PACKAGE)
    for worker, answer in sorted(answers.items()):
        if isinstance(answer, Exception):
            yield f"{worker} answers {type(answer).__name__}: {answer}"
            continue
        version, host, unseen = answer
        if version != ours:
            yield f"{host} has {f'{_PACKAGE} {version}' if version else f'no {_PACKAGE}'}, this is {ours}"
        yield from (f"{host} does not see {path}" for path in unseen)


ANSWER_S: Final = 10.0  # time limit for an answer of the scheduler, and for its first worker


@dataclass(frozen=True)
class RemoteScheduler:
    """A `Scheduler` at ``tcp://HOST:PORT``, or at ``tls://HOST:PORT`` with the keys from Dask's configuration."""

    address: str

    def summarize(self, traces: Sequence[Found], request: Request) -> Iterator[TraceSummary]:
        own = [request.own.file] if request.own is not None and request.own.file is not None else []
        # One trace suffices: without shared storage, a worker sees none.
        seen = [*(each.path for each in traces[:1] if address_of(each.path) is None), *own]
        with self._client() as client:
            require_able_workers(client, self.address, list(map(str, seen)), limit_s=ANSWER_S)
            yield from run_tasks(client, traces, request)

    @contextmanager
    def _client(self) -> Iterator[Client]:
        """Connects, and silences Dask's log, because this package reports errors."""
        import distributed

        logger = logging.getLogger("distributed")
        with ExitStack() as ends:
            ends.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.CRITICAL)
            try:
                asyncio.run(_require_scheduler(self.address))
                client = distributed.Client(self.address, timeout=ANSWER_S, set_as_default=False)
            except Exception as error:  # noqa: BLE001 - an unknown service may answer anything
                words = one_line(f"{type(error).__name__} {error}").strip()
                raise Unavailable(
                    f"no Dask scheduler answers at {self.address}: {words}",
                    remedy="look whether it runs there (dask scheduler --host HOST), or use --scheduler local",
                ) from None
            ends.callback(client.close, timeout=ANSWER_S)
            yield client


async def _require_scheduler(address: str) -> None:
    """Requires a Dask scheduler to answer in time, because a client would wait forever for another service."""
    import distributed

    keys = distributed.Security().get_connection_args("client")
    async with distributed.rpc(address, connection_args=keys) as scheduler:
        found = await asyncio.wait_for(scheduler.identity(), ANSWER_S)
    if found.get("type") != "Scheduler":
        raise ValueError(f"it is a {found.get('type')}")


LOCAL: Final = "local"
_SYNCHRONOUS: Final = "synchronous"
_ADDRESS: Final = re.compile(r"(?:tcp|tls)://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")

INSTALL: Final = "pip install 'pytest-ldos[fleet]'"


def choose_scheduler(word: str | None, *, workers: int | None = None) -> Scheduler:
    """Returns the scheduler of a name or address; without one, processes on this machine if Dask is installed.

    Args:
        workers: number of processes on this machine; by default the number of usable CPUs.

    Raises:
        ConfigurationError: unknown scheduler, or `workers` given for a scheduler other than ``local``.
        Unavailable: Dask, or a package for local processes, is not installed.
    """
    kept = (_SYNCHRONOUS if missing_package(LOCAL) and workers is None else LOCAL) if word is None else word
    if workers is not None and kept != LOCAL:
        raise ConfigurationError(
            f"--workers belongs to --scheduler local, not to {kept}",
            remedy="leave it out: this process is one, and a scheduler elsewhere has the workers that it has",
        )
    if kept == _SYNCHRONOUS:
        return InProcess()
    address = _ADDRESS.fullmatch(kept)
    is_address = address is not None and 0 < int(address.group(1)) < 2**16
    if kept != LOCAL and not is_address:
        raise ConfigurationError(
            f"unknown scheduler {kept!r}",
            remedy="use 'local' (processes of this machine), 'synchronous' (this process), or tcp://HOST:PORT",
        )
    missing = missing_package(kept)
    if missing:
        raise Unavailable(f"{missing} is not installed", remedy=f"{INSTALL}, or use --scheduler synchronous")
    return RemoteScheduler(kept) if is_address else LocalCluster(workers or len(our_cpus()))


def missing_package(word: str) -> str:
    """The first missing package of a scheduler; empty if all are installed. Imports nothing."""
    needed = {"dask": "Dask", "distributed": "Dask's scheduler (distributed)"}
    if word == LOCAL:  # its processes have keys
        needed["cryptography"] = "cryptography"
    return next((title for name, title in needed.items() if importlib.util.find_spec(name) is None), "")
