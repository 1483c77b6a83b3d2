"""Samples of the messages that arrived: five 64-bit integers each, as the processes of either layer write them.

Columns: ``receiver`` and ``sender`` (ids of the topology; for a reply both are the client), ``number``, ``sent_ns``,
``received_ns`` (CLOCK_MONOTONIC).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

COLUMNS: Final = 5
RECORD_BYTES: Final = COLUMNS * 8
RECEIVER, SENDER, NUMBER, SENT_NS, RECEIVED_NS = range(COLUMNS)

Samples = NDArray[np.int64]
"""Shape (messages, `COLUMNS`); the messages of each receiver are in the order of arrival."""


class Sample(NamedTuple):
    receiver: int
    sender: int
    number: int
    sent_ns: int
    received_ns: int


class SampleFile:
    """Samples of the messages received in this process; any thread may add."""

    def __init__(self, path: str) -> None:
        self._file = Path(path).open("wb")  # noqa: SIM115 - closed with the process
        self._pending: list[Sample] = []
        self._lock = threading.Lock()
        self._newest: dict[tuple[int, int], int] = {}

    def add(self, sample: Sample) -> None:
        with self._lock:
            self._pending.append(sample)
        key = sample.receiver, sample.sender
        self._newest[key] = max(sample.number, self._newest.get(key, -1))

    def has_all(self, receiver: int, sender: int, sent: int) -> bool:
        """Returns True if the last of `sent` messages arrived."""
        return self._newest.get((receiver, sender), -1) >= sent - 1

    def flush(self) -> None:
        """Writes the samples added since the last flush."""
        with self._lock:
            pending, self._pending = self._pending, []
        np.array(pending, dtype=np.int64).tofile(self._file)
        self._file.flush()


def read_samples(files: Iterable[Path]) -> Samples:
    """Reads all samples of some processes; drops a record that a killed process left incomplete."""
    found = [_read(file) for file in files if file.exists()]
    return np.concatenate([np.empty((0, COLUMNS), dtype=np.int64), *found])


def _read(file: Path) -> Samples:
    data = file.read_bytes()
    whole = len(data) - len(data) % RECORD_BYTES
    return np.frombuffer(data[:whole], dtype=np.int64).reshape(-1, COLUMNS)
