"""Processes that use a CPU until they are ended, or for a limited time."""

from __future__ import annotations

import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import psutil

from pytest_ldos.host import interference
from pytest_ldos.host import interference as interference_meter
from tests.builders.stressors import wait_until

_BUSY = """
import os, sys, time

def innermost(count):
    return sum(number * number for number in range(count))

def outermost():
    innermost(5000)
    os.stat("/")

end = time.monotonic() + 300
print("ready", flush=True)
while time.monotonic() < end:
    outermost()
    if len(sys.argv) > 1:
        time.sleep(0.001)
"""


def run_for(process: subprocess.Popen[str] | psutil.Process, seconds: float) -> None:
    """Waits until a process has used a CPU for so long: what is sampled comes with that."""
    times = psutil.Process(process.pid)
    wanted = times.cpu_times().user + seconds
    wait_until(lambda: times.cpu_times().user >= wanted)


def busy_process(*, gently: bool = False) -> AbstractContextManager[subprocess.Popen[str]]:
    """One that runs when the context begins; it also ends by itself after five minutes."""
    return ready_process(sys.executable, "-c", _BUSY, *(["gently"] if gently else []))


@contextmanager
def foreign_load(folder: Path, *, is_foreign: bool = True) -> Iterator[str]:
    """Two busy loops, each in a session of its own, or in the test's; yields their program's name, which no other has.

    Each has used a CPU when the context begins. They also end by themselves after five minutes.
    """
    script = folder / f"foreign_load_{secrets.token_hex(4)}.py"
    script.write_text(_BUSY)
    with ExitStack() as running:
        command = sys.executable, str(script)
        for _ in range(2):
            run_for(running.enter_context(ready_process(*command, start_new_session=is_foreign)), 0.1)
        yield script.name


def name_all_others(set_attribute: Callable[[object, str, object], None] = setattr) -> None:
    """Has reports name every other program: on a busy machine some may use more than the one that a test knows."""
    for module, name in (
        (interference, "MOST_PROGRAMS"),
        (interference, "_MOST_NAMED"),
        (interference_meter, "MOST_PROGRAMS"),
    ):
        set_attribute(module, name, sys.maxsize)


def suspend(process: subprocess.Popen[str]) -> None:
    """Suspends a process; it uses no CPU any more."""
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)


@contextmanager
def ready_process(*command: str, start_new_session: bool = False) -> Iterator[subprocess.Popen[str]]:
    """A process that is ready when the context begins, and ends with it."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=start_new_session)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
