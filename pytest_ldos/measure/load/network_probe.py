"""The network's effect on datagrams, measured with probes of our own.

Pairs of probes are sent to a port that no participant uses. The kernel stamps their arrival, so that it does not
matter when this process reads them.
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

from pytest_ldos.base.errors import LoadFailed
from pytest_ldos.base.units import NS_PER_S

PAYLOAD_BYTES: Final = 200
WIRE_BITS: Final = 8 * (PAYLOAD_BYTES + 8 + 20 + 14)
"""Size of a datagram in the kernel's queues, with headers of UDP, IP and Ethernet."""

_NUMBER: Final = struct.Struct("<Q")
_STAMP: Final = struct.Struct("@qq")
_SO_TIMESTAMPNS: Final = 35
_READ_TIMEOUT_S: Final = 0.1


@dataclass(frozen=True)
class Crossing:
    """Results of the probes.

    Attributes:
        sent, lost: probes whose time to arrive is over, and those of them that did not arrive.
        delays_ns: one-way delays of those that arrived, in the order of sending.
        gaps_ns: time between the two probes of a pair, where both arrived.
    """

    sent: int
    lost: int
    delays_ns: tuple[int, ...]
    gaps_ns: tuple[int, ...]


class NetworkProbe:
    """Sends pairs of probes and receives them, each on a thread.

    Args:
        interval_s: time between two pairs.
        patience_s: time after which a probe that has not arrived is lost.
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
        """Number of probes sent so far."""
        return len(self._sent)

    @property
    def crossing(self) -> Crossing:
        """Results of the probes that were sent long enough ago."""
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
    """Binds the last free port, because participants begin with the first."""
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
    """Time at which the kernel received a datagram; the present time without a stamp."""
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
            seconds, nanoseconds = _STAMP.unpack(data)
            return int(seconds) * NS_PER_S + int(nanoseconds)
    return time.time_ns()
