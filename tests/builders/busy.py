"""Processes that use a CPU until they are ended, or for a limited time."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import psutil

_BUSY = """
import os, sys, time

def innermost(count):
    return sum(number * number for number in range(count))

def outermost():
    innermost(5000)
    os.stat("/")

end = time.monotonic() + 30
print("ready", flush=True)
while time.monotonic() < end:
    outermost()
    if len(sys.argv) > 1:
        time.sleep(0.001)
"""


def run_for(process: subprocess.Popen[str], seconds: float) -> None:
    """Waits until a process has used a CPU for so long: what is sampled comes with that."""
    times = psutil.Process(process.pid)
    wanted = times.cpu_times().user + seconds
    deadline = time.monotonic() + 60
    while times.cpu_times().user < wanted:
        assert time.monotonic() < deadline, "it did not run"
        time.sleep(0.01)


def busy_process(*, gently: bool = False) -> AbstractContextManager[subprocess.Popen[str]]:
    """One that runs when the context begins; it also ends by itself after half a minute."""
    return ready_process(sys.executable, "-c", _BUSY, *(["gently"] if gently else []))


@contextmanager
def foreign_load(folder: Path, *, is_foreign: bool = True) -> Iterator[str]:
    """Two busy loops, each in a session of its own, or in the test's; yields their program's name.

    Sessions share a machine that is busy otherwise. They also end by themselves after half a minute.
    """
    script = folder / "foreign_load.py"
    script.write_text(_BUSY)
    with ExitStack() as running:
        for _ in range(2):
            running.enter_context(ready_process(sys.executable, str(script), start_new_session=is_foreign))
        yield script.name


@contextmanager
def ready_process(*command: str, start_new_session: bool = False) -> Iterator[subprocess.Popen[str]]:
    """One that has said that it is ready when the context begins, and is ended with it."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=start_new_session)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
