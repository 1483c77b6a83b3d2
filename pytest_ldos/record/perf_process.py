"""A running ``perf record``: its begin, which it acknowledges, and its end.

Reference: ``perf-record(1)`` (``--control``, ``-D``).
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import ProfilingFailed
from pytest_ldos.base.text import one_line
from pytest_ldos.host.processes import Child, ProcessGroup
from pytest_ldos.host.temporary import temporary_folder
from pytest_ldos.record.interruption import interrupt

_READY_S: Final = 15.0
_END_S: Final = 30.0
_POLL_S: Final = 0.005


class PerfProcess:
    """``perf record`` with the given arguments, which writes to a file.

    Args:
        log_directory: gets perf's log.
        name: of that log.
    """

    def __init__(self, log_directory: Path, name: str = "perf-record") -> None:
        self._group = ProcessGroup(log_directory=log_directory)
        self._name = name
        self._child: Child | None = None

    def start(self, arguments: Sequence[str], data: Path) -> None:
        """As `starting`, beside nothing."""
        with self.starting(arguments, data):
            pass

    @contextmanager
    def starting(self, arguments: Sequence[str], data: Path) -> Iterator[None]:
        """Starts perf beside what the context does; the context's end returns when perf records.

        Raises:
            ProfilingFailed: it could not begin; quotes perf's output.
        """
        with temporary_folder("ldos-perf-") as folder:
            control, answer = folder / "control", folder / "answer"
            os.mkfifo(control)
            os.mkfifo(answer)
            command = ["perf", "record", *arguments, "-D", "-1", f"--control=fifo:{control},{answer}", "-o", str(data)]
            self._child = self._group.start(self._name, command, fresh_log=True)
            try:
                with _asked_to_begin(control, answer) as reader:
                    yield
                    self._await_begin(self._child, reader)
            except BaseException:
                self.cancel()
                raise

    def _await_begin(self, child: Child, reader: int) -> None:
        """Waits for perf's acknowledgement."""
        deadline = time.monotonic() + _READY_S
        answered = select.poll()  # unlike select, it takes file descriptors of any size
        answered.register(reader, select.POLLIN)
        while time.monotonic() < deadline and child.exit_code is None:
            if answered.poll(1000 * _POLL_S):
                os.read(reader, 64)
                return
        said = first_reason(child.last_lines())
        how = "did not begin" if child.exit_code is None else "ended"
        raise ProfilingFailed(f"perf record {how}: {said}", remedy=f"see {child.log}")

    def stop(self) -> None:
        """Ends it; returns when its file is whole.

        Raises:
            ProfilingFailed: it had ended before, or does not end.
        """
        assert self._child is not None
        try:
            interrupt(self._child, limit_s=_END_S)
        finally:
            self.cancel()

    def cancel(self) -> None:
        """Ends it, whatever becomes of its file. May be called at any time, also twice."""
        self._group.stop()


@contextmanager
def _asked_to_begin(control: Path, answer: Path) -> Iterator[int]:
    """Asks perf to begin; gives the descriptor on which it answers."""
    with ExitStack() as resources:
        reader = os.open(answer, os.O_RDWR | os.O_NONBLOCK)
        resources.callback(os.close, reader)
        writer = os.open(control, os.O_RDWR | os.O_NONBLOCK)
        resources.callback(os.close, writer)
        os.write(writer, b"enable\n")
        yield reader


def first_reason(said: str) -> str:
    """The reason in perf's output: its first line that is no heading."""
    lines = [one_line(line).strip() for line in said.splitlines()]
    return next((line for line in lines if line and not line.endswith("Error:")), "no reason given")
