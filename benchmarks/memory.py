"""Compares the peak anonymous memory of one decoding with the returned columns.

    python -m benchmarks.memory TRACE THREADS [EVENT…]

A process of its own, so that nothing is counted that was there before. Mapped pages of the trace
are not anonymous: the kernel may drop them at any time.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import numpy as np

from pytest_ldos.trace.ctf.read import DecodedTrace, read_trace

SAMPLE_S = 0.0005


def anonymous_bytes() -> int:
    """Anonymous pages of this process that are in memory now."""
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("the kernel does not report anonymous memory separately")


class PeakSampler(threading.Thread):
    """Follows anonymous memory while the decoder, which needs no interpreter, works."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = anonymous_bytes()
        self._done = threading.Event()

    def run(self) -> None:
        while not self._done.wait(SAMPLE_S):
            self.peak = max(self.peak, anonymous_bytes())

    def stop(self) -> int:
        self._done.set()
        self.join()
        return max(self.peak, anonymous_bytes())


def bytes_of(trace: DecodedTrace) -> int:
    """Memory of all columns; one number that stands for a whole column is no memory."""
    total = 0
    for table in trace.events.values():
        arrays: list[np.ndarray | None] = [table.timestamp_ns, table.cpu_id, table.trace]
        for column in table.columns.values():
            arrays += [column.values, column.offsets, column.valid]
        total += sum(array.nbytes for array in arrays if array is not None and 0 not in array.strides)
    return total


def main() -> None:
    events = sys.argv[3:] or None
    before = anonymous_bytes()
    sampler = PeakSampler()
    sampler.start()
    trace = read_trace(sys.argv[1], events=events, threads=int(sys.argv[2]))
    peak = sampler.stop() - before
    print(json.dumps({"columns": bytes_of(trace), "peak": peak, "at_end": anonymous_bytes() - before}))


if __name__ == "__main__":
    main()
