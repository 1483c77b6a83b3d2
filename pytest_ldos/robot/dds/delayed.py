"""A writer that delays its samples: a planted fault that makes the transport slower."""

from __future__ import annotations

import threading
import time
from collections import deque

from pytest_ldos.robot.dds.endpoint import Writer


class DelayedWriter:
    """Writes each sample after a delay, in order, on a thread of its own.

    Args:
        delay_s: the delay, seconds.
    """

    def __init__(self, writer: Writer, delay_s: float) -> None:
        self._writer = writer
        self._delay_s = delay_s
        self._waiting: deque[tuple[float, bytes, int]] = deque()
        self._given = threading.Semaphore(0)
        self.gid = writer.gid
        threading.Thread(target=self._write_all, name="delayed_writer", daemon=True).start()

    def write(self, data: bytes, timestamp_ns: int) -> None:
        self._waiting.append((time.monotonic() + self._delay_s, data, timestamp_ns))
        self._given.release()

    def matched(self) -> int:
        """Number of matched readers."""
        return self._writer.matched()

    def _write_all(self) -> None:
        while True:
            self._given.acquire()
            due, data, timestamp_ns = self._waiting.popleft()
            time.sleep(max(0.0, due - time.monotonic()))
            self._writer.write(data, timestamp_ns)
