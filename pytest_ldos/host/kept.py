"""A command and its descendants, which end with us however we end (see `keeper`)."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pytest_ldos.base.writable import opened_log
from pytest_ldos.host.inherited import pass_on
from pytest_ldos.host.keeper import LADDER, marked_pids
from pytest_ldos.host.owner import owned_by_us
from pytest_ldos.host.processes import Child

_BY_SHELL: Final = ("sh", "-c", 'exec "$@"', "sh")
"""Debuggers and tracers of the tests (debugpy, VizTracer) rewrite commands that begin with Python, to follow them."""

PATIENCE_S: Final = 5.0
"""Wait after each signal. Gazebo takes 2.2 s from SIGINT to its end."""

_GRACE_S: Final = 5.0
_KILL_S: Final = 2.0
_POLL_S: Final = 0.01


class KeptTree:
    """A running command, its descendants, and the keeper that ends them all.

    Args:
        name: what messages call it.
        log: gets the command's standard error; its standard output is a pipe, ``child.process.stdout``.
        environment: added to ours, of which it gets what `pass_on` leaves.
        patience_s: for each of SIGINT, SIGTERM and SIGKILL.
        holds: descriptors that the keeper holds open until everything has ended, such as that of a locked file.

    Attributes:
        child: the keeper; it ends when the command has.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str],
        patience_s: float = PATIENCE_S,
        holds: Sequence[int] = (),
    ) -> None:
        self._limit_s = (len(LADDER) + 1) * patience_s + _GRACE_S
        self._mark = secrets.token_hex(16)
        keeper = [*_BY_SHELL, sys.executable, "-m", "pytest_ldos.host.keeper", self._mark, str(patience_s)]
        with opened_log(log) as sink:
            process = subprocess.Popen(
                [*keeper, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                encoding="utf-8",
                errors="replace",
                env={**pass_on({**os.environ, **environment}), **owned_by_us()},
                process_group=0,
                pass_fds=holds,
            )
        self.child = Child(name, process, log)

    def pids(self) -> list[int]:
        """The command and its descendants that still run."""
        return marked_pids(self._mark)

    def stop(self) -> None:
        """Ends everything. May be called twice.

        Raises:
            RuntimeError: a process survived even SIGKILL.
        """
        process = self.child.process
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(timeout=self._limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._kill_survivors()
        process.stdout.close()

    def _kill_survivors(self) -> None:
        """Kills what the keeper left because it was killed itself."""
        deadline = time.monotonic() + _KILL_S
        while survivors := self.pids():
            if time.monotonic() > deadline:
                raise RuntimeError(f"processes {survivors} survived SIGKILL")
            for pid in survivors:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(_POLL_S)
