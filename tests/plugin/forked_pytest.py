"""Runs of pytest, each in a process of its own, forked from one that has loaded what they would load.

Loading it takes longer than most runs do. What is loaded when is asserted in processes of their own (``test_startup``).
A run sees its own environment, folder and arguments, as ``python -m pytest`` does; only ``sitecustomize`` and Python's
own switches (``PYTHON…``) are those of the server.

Requests are JSON lines on standard input, answers (exit statuses) JSON lines on standard output.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

import pytest


@dataclass(frozen=True)
class Request:
    arguments: list[str]
    folder: str
    environment: dict[str, str]
    stdout: str
    stderr: str
    timeout_s: int


class ForkedPytest:
    """The client: runs one pytest at a time."""

    def __init__(self) -> None:
        command = [sys.executable, __file__]
        without = os.environ | {"_RJEM_MALLOC_CONF": "background_thread:false"}
        self._server = subprocess.Popen(command, env=without, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, folder: Path, *arguments: str, timeout_s: int = 300) -> pytest.RunResult:
        stdout, stderr = folder / "stdout", folder / "stderr"
        temporary = tempfile.mkdtemp(prefix="runpytest-", dir=folder)
        request = Request(
            [f"--basetemp={temporary}", *arguments], str(folder), dict(os.environ), str(stdout), str(stderr), timeout_s
        )
        began_s = time.monotonic()
        code = self._ask(request)
        printed, warned = (file.read_text("utf-8", "replace").splitlines() for file in (stdout, stderr))
        print(*printed, *warned, sep="\n")
        assert code != -signal.SIGALRM, f"pytest took longer than {timeout_s} s"
        return pytest.RunResult(code, printed, warned, time.monotonic() - began_s)

    def _ask(self, request: Request) -> int:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(asdict(request)) + "\n")
        self._server.stdin.flush()
        return int(json.loads(self._server.stdout.readline()))

    def close(self) -> None:
        self._server.communicate()


def serve() -> None:
    """Forks for each request; returns in the forked process alone, or at the end of input."""
    for line in iter(sys.stdin.readline, ""):
        request = Request(**json.loads(line))
        pid = os.fork()
        if not pid:
            become(request)
            try:
                runpy.run_module("pytest", run_name="__main__", alter_sys=True)
            except SystemExit as ended:
                end(ended.code)
            return
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def end(code: object) -> NoReturn:
    """Ends this process as Python does, but leaves the memory of all modules to the kernel, which is ten times faster."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(code) if isinstance(code, int) else code is not None)


def become(request: Request) -> None:
    """This process is from now on the one that was asked for; SIGALRM ends it when its time is over."""
    signal.setitimer(signal.ITIMER_REAL, request.timeout_s)
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    path = request.environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:1] = [request.folder, *filter(None, path)]
    sys.argv = ["pytest", *request.arguments]
    redirect(os.devnull, os.O_RDONLY, 0)
    for target, descriptor in ((request.stdout, 1), (request.stderr, 2)):
        redirect(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, descriptor)


def redirect(target: str, flags: int, descriptor: int) -> None:
    opened = os.open(target, flags, 0o600)
    os.dup2(opened, descriptor)
    os.close(opened)


LOADED = ("base", "host", "judge", "measure", "plugin", "record", "scenario", "show", "trace")
"""Wings that a scenario with a fake stack uses."""


def load() -> None:
    """Loads these wings with their libraries, but the tracer's: a fork would lose the threads that it starts.

    Polars makes its pool of threads in the process that first computes. What it starts when it is loaded only gives
    memory and files back; its allocator is configured without it.
    """
    for name in ("execnet", "multiprocessing", "packaging.version", "pdb", "scipy.optimize", "scipy.special", "yaml"):
        importlib.import_module(name)

    sys.path.insert(0, str(Path(__file__).parents[2]))
    from pytest_ldos.robot.stack.embedded.installed import installed_here

    installed_here()  # remembered by all forks
    sys.modules["pytest_ldos.robot.dds._lttng"] = None  # type: ignore[assignment] # so that its import fails
    for wing in LOADED:
        package = importlib.import_module(f"pytest_ldos.{wing}")
        for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            with suppress(ModuleNotFoundError):
                importlib.import_module(each.name)
    importlib.import_module("pytest_ldos.judge.unchanged").estimate_record()  # remembered, too
    importlib.import_module("tests.fakes.rig")
    vars(os)["fsync"] = lambda _: None  # no result of these runs has to survive the machine's crash
    del sys.modules["pytest_ldos.robot.dds._lttng"], sys.path[0]
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    load()
    serve()
