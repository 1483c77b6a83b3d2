"""A Dask scheduler and its workers as processes of their own, on loopback, as somebody else would start them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

_LIMIT_S = 60.0


@dataclass(frozen=True)
class Running:
    """A scheduler that answers and knows its workers.

    Attributes:
        workers: each a nanny, whose child reads traces.
    """

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: tuple[subprocess.Popen[bytes], ...]


@contextmanager
def running_scheduler(
    folder: Path, *, workers: int = 2, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[Running]:
    """All of them end with the context, and whatever they started.

    Args:
        cwd, environment: of the workers.
    """
    from distributed import Client

    reported = folder / "scheduler.json"
    with ExitStack() as stack:
        scheduler = stack.enter_context(
            _process("scheduler", "--port", "0", "--scheduler-file", reported, folder=folder)
        )
        address = _await_address(reported, scheduler)
        options = ("--nthreads", "1", "--local-directory", folder, "--no-dashboard", address)
        nannies = tuple(
            stack.enter_context(_process("worker", *options, folder=folder, cwd=cwd, environment=environment))
            for _ in range(workers)
        )
        if workers:
            with Client(address, timeout=_LIMIT_S, set_as_default=False) as client:
                client.wait_for_workers(workers, timeout=_LIMIT_S)
        yield Running(address, scheduler, nannies)


@contextmanager
def _process(
    kind: str,
    *options: object,
    folder: Path,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--host", "127.0.0.1"]
    no_page = ["--no-dashboard"] if kind == "scheduler" else []
    with (folder / "dask.log").open("ab") as log:
        process = subprocess.Popen(
            [*command, *no_page, *map(str, options)],
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=cwd,
            env={**os.environ, "DASK_TEMPORARY_DIRECTORY": str(folder), **(environment or {})},
        )
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """A process and all below it, at once; but what removes their semaphores ends by itself when it has done so."""
    if process.poll() is None:
        below = psutil.Process(process.pid).children(recursive=True)
        keeping = [each for each in below if _keeps_semaphores(each)]
        process.kill()
        for each in below:
            if each not in keeping:
                with suppress(psutil.NoSuchProcess):
                    each.kill()
        psutil.wait_procs(below, timeout=_LIMIT_S)
    process.wait()


def _keeps_semaphores(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return any("resource_tracker" in word for word in process.cmdline())
    return False


def _await_address(reported: Path, scheduler: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + _LIMIT_S
    while time.monotonic() < deadline:
        if reported.exists() and (text := reported.read_text()):
            return str(json.loads(text)["address"])
        assert scheduler.poll() is None, "the scheduler ended"
        time.sleep(0.05)
    raise AssertionError("the scheduler does not answer")
