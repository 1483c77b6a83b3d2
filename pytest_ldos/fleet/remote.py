"""A Dask scheduler started by the user: on this machine, or in front of a cluster."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.base.text import one_line
from pytest_ldos.fleet.find import Found
from pytest_ldos.fleet.handshake import paths_of, require_able_workers
from pytest_ldos.fleet.request import Request
from pytest_ldos.fleet.summary import TraceSummary
from pytest_ldos.fleet.tasks import run_tasks
from pytest_ldos.fleet.windows import spread_over
from pytest_ldos.trace.ctf.windows import WindowedTrace
from pytest_ldos.trace.execution.build_windows import Spread, WindowTask
from pytest_ldos.trace.execution.window_rows import WholeTrace, WindowRows

if TYPE_CHECKING:
    from distributed import Client

ANSWER_S: Final = 10.0
"""Time limit for the scheduler to answer, and again for it to have a worker."""


@dataclass(frozen=True)
class RemoteScheduler:
    """See `Scheduler`.

    Attributes:
        address: ``tcp://HOST:PORT``; ``tls://HOST:PORT`` with the keys from Dask's configuration.
    """

    address: str

    def summarize(self, traces: Sequence[Found], request: Request) -> Iterator[TraceSummary]:
        with _quiet(), self._client() as client:
            require_able_workers(client, self.address, paths_of(traces, request), limit_s=ANSWER_S)
            yield from run_tasks(client, traces, request)

    @contextmanager
    def spreading(self) -> Iterator[Spread]:
        with _quiet(), self._client() as client:

            def read(trace: WindowedTrace, whole: WholeTrace, tasks: Iterator[WindowTask]) -> Iterator[WindowRows]:
                require_able_workers(client, self.address, [str(trace.folder)], limit_s=ANSWER_S)
                yield from spread_over(client)(trace, whole, tasks)

            yield read

    @contextmanager
    def _client(self) -> Iterator[Client]:
        import distributed

        try:
            asyncio.run(_require_scheduler(self.address))
            client = distributed.Client(self.address, timeout=ANSWER_S, set_as_default=False)
        except Exception as error:  # noqa: BLE001 - an unknown service may answer anything
            raise Unavailable(
                f"no Dask scheduler answers at {self.address}: {one_line(f'{type(error).__name__} {error}').strip()}",
                remedy="look whether it runs there (dask scheduler --host HOST), or use --scheduler local",
            ) from None
        try:
            yield client
        finally:
            client.close(timeout=ANSWER_S)


async def _require_scheduler(address: str) -> None:
    """Checks that a Dask scheduler answers, because a client would wait forever for another, silent service there.

    Raises:
        TimeoutError: no answer in time.
    """
    import distributed

    keys = distributed.Security().get_connection_args("client")
    async with distributed.rpc(address, connection_args=keys) as scheduler:
        found = await asyncio.wait_for(scheduler.identity(), ANSWER_S)
    if found.get("type") != "Scheduler":
        raise ValueError(f"it is a {found.get('type')}")


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences Dask's log: errors are reported by this package."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
