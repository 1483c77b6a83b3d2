"""What the network does to datagrams, measured with datagrams of our own that nobody else reads.

Pairs are sent to a port that nobody uses. The kernel stamps their arrivals, so that it does not matter
when this process gets to read them.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from pytest_ldos.errors import LoadFailed
from pytest_ldos.units import NS_PER_S

PAYLOAD_BYTES: Final = 200
WIRE_BITS: Final = 8 * (PAYLOAD_BYTES + 8 + 20 + 14)
"""Of a datagram as the kernel's queues count it, with headers of UDP, IP and Ethernet."""

_NUMBER: Final = struct.Struct("<Q")
_STAMP: Final = struct.Struct("@qq")
_SO_TIMESTAMPNS: Final = 35
_READ_TIMEOUT_S: Final = 0.1


@dataclass(frozen=True)
class Crossing:
    """What came of datagrams.

    Attributes:
        sent, lost: only those whose time to arrive is over.
        delays_ns: of those that arrived, one way, in the order in which they were sent.
        gaps_ns: between the two of a pair, where both arrived.
    """

    sent: int
    lost: int
    delays_ns: tuple[int, ...]
    gaps_ns: tuple[int, ...]


class NetworkProbe:
    """Sends pairs and takes them in, each on a thread.

    Args:
        interval_s: between two pairs.
        patience_s: within which what arrives at all has arrived.
    """

    def __init__(self, ports: range, *, interval_s: float, patience_s: float) -> None:
        self._interval_s = interval_s
        self._patience_ns = int(patience_s * NS_PER_S)
        self._sink = _bind_unused(ports)
        self._source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._source.bind(("127.0.0.1", 0))
        self._sent: list[int] = []
        self._arrived: dict[int, int] = {}
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=work, name="network probe", daemon=True) for work in (self._send, self._take)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        self._sink.close()
        self._source.close()

    @property
    def datagrams(self) -> int:
        """How many were sent so far."""
        return len(self._sent)

    @property
    def crossing(self) -> Crossing:
        """What came of those that were sent long enough ago."""
        now_ns = time.time_ns()
        arrived = dict(self._arrived)
        sent = [stamp for stamp in list(self._sent) if now_ns - stamp > self._patience_ns]
        delays = {number: arrived[number] - stamp for number, stamp in enumerate(sent) if number in arrived}
        gaps = [arrived[number + 1] - arrived[number] for number in delays if number % 2 == 0 and number + 1 in delays]
        return Crossing(len(sent), len(sent) - len(delays), tuple(delays.values()), tuple(gaps))

    def _send(self) -> None:
        filling = bytes(PAYLOAD_BYTES - _NUMBER.size)
        address = self._sink.getsockname()
        while not self._stopping.wait(self._interval_s):
            for _ in range(2):
                number = len(self._sent)
                self._sent.append(time.time_ns())
                self._source.sendto(_NUMBER.pack(number) + filling, address)

    def _take(self) -> None:
        ours = self._source.getsockname()[1]
        while not self._stopping.is_set():
            try:
                data, ancillary, _, sender = self._sink.recvmsg(PAYLOAD_BYTES, socket.CMSG_SPACE(_STAMP.size))
            except TimeoutError:
                continue
            if sender[1] == ours and len(data) == PAYLOAD_BYTES:
                self._arrived[_NUMBER.unpack_from(data)[0]] = _stamp_of(ancillary)


@contextmanager
def probing(ports: range, *, interval_s: float, patience_s: float) -> Iterator[NetworkProbe]:
    """Probes for as long as the context lasts.

    Raises:
        LoadFailed: every port is taken.
    """
    probe = NetworkProbe(ports, interval_s=interval_s, patience_s=patience_s)
    probe.start()
    try:
        yield probe
    finally:
        probe.stop()


def _bind_unused(ports: range) -> socket.socket:
    """The last port that is free: participants begin with the first."""
    for port in reversed(ports):
        sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            sink.bind(("127.0.0.1", port))
        except OSError:
            sink.close()
            continue
        sink.settimeout(_READ_TIMEOUT_S)
        sink.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        return sink
    raise LoadFailed(f"no UDP port from {ports[0]} to {ports[-1]} is free")


def _stamp_of(ancillary: list[tuple[int, int, bytes]]) -> int:
    """When the kernel took a datagram in; without its stamp, now."""
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
            seconds, nanoseconds = _STAMP.unpack(data)
            return int(seconds) * NS_PER_S + int(nanoseconds)
    return time.time_ns()
