"""Dask processes on this machine: on loopback only, with keys and a private folder of their own."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pytest_ldos.fleet.find import Found
from pytest_ldos.fleet.interrupts import interrupts_wait
from pytest_ldos.fleet.request import Request
from pytest_ldos.fleet.summary import TraceSummary
from pytest_ldos.fleet.tasks import run_tasks
from pytest_ldos.fleet.windows import spread_over
from pytest_ldos.host.temporary import temporary_folder
from pytest_ldos.trace.ctf.read import THREADS_VARIABLE
from pytest_ldos.trace.execution.build_windows import Spread

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
"""One thread per worker: each worker is a process with a CPU of its own."""


@dataclass(frozen=True)
class LocalCluster:
    """See `Scheduler`.

    Attributes:
        workers: number of processes; of many traces, at most one per trace.
    """

    workers: int

    def summarize(self, traces: Sequence[Found], request: Request) -> Iterator[TraceSummary]:
        with connected_cluster(min(self.workers, max(len(traces), 1))) as client:
            yield from run_tasks(client, traces, request)

    @contextmanager
    def spreading(self) -> Iterator[Spread]:
        with connected_cluster(self.workers) as client:
            yield spread_over(client)


@contextmanager
def connected_cluster(workers: int) -> Iterator[Client]:
    """A client of a cluster with this many processes, which end when the context does."""
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
