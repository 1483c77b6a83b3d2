"""Resource use of ended threads, from the kernel's exit records.

``/proc`` drops a process once its parent has reaped it. The records need ``CAP_NET_ADMIN``, the initial user and PID
namespaces, and Linux 5.19, whose records have the pid of a thread's process.

Reference: Linux ``Documentation/accounting/taskstats.rst``, ``include/uapi/linux/taskstats.h``.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self

_NETLINK_GENERIC: Final = 16
_SO_RCVBUFFORCE: Final = 33
_BUFFER: Final = 8 << 20
"""Socket buffer in bytes; a record takes 1000 to 2000."""
_ANSWER_S: Final = 2.0

_CONTROLLER, _GET_FAMILY, _FAMILY_ID, _FAMILY_NAME = 16, 3, 1, 2
_REQUEST_WITH_ANSWER: Final = 1 | 4
_ERROR: Final = 2
_GET, _LISTEN_TO_CPUS = 1, 3
_OF_THREAD, _STATISTICS = 4, 3
_NESTED: Final = 0x8000
_KIB: Final = 1024

_FIELDS: Final = {
    "cpu_ns": ("=Q", 72),
    "pid": ("=I", 128),
    "parent": ("=I", 132),
    "minor_faults": ("=Q", 168),
    "major_faults": ("=Q", 176),
    "peak_kib": ("=Q", 200),
    "voluntary": ("=Q", 272),
    "involuntary": ("=Q", 280),
    "process": ("=I", 368),
}
"""Format and offset in ``struct taskstats``, which the kernel extends only at its end."""
_SHORTEST: Final = 372
_NAME: Final = slice(80, 112)


@dataclass(frozen=True, kw_only=True)
class TaskExit:
    """Exit record of a thread, with counts over its lifetime.

    Attributes:
        tid, name: id and name of the thread.
        pid, parent: pids of its process and of that process's parent.
        peak_bytes: peak of its process's resident memory since the last reset.
    """

    tid: int
    name: str
    pid: int
    parent: int
    cpu_ns: int
    switches: int
    faults: int
    peak_bytes: int


class TaskExits:
    """Receives an exit record of each thread on this machine from its creation on.

    Attributes:
        is_whole: False if the kernel refuses or dropped records.
    """

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        try:
            self._socket = _listen()
        except (OSError, ValueError, struct.error):
            self.is_whole = False
        else:
            self.is_whole = True

    def take(self) -> list[TaskExit]:
        """Records since the last call, or since creation."""
        found: list[TaskExit] = []
        while self._socket is not None:
            try:
                found += _parse_exits(self._socket.recv(1 << 16))
            except BlockingIOError:
                break
            except OSError:
                self.is_whole = False
                break
        return found

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _listen() -> socket.socket:
    """Opens a socket for the records of all CPUs.

    Raises:
        OSError: the kernel refuses; ValueError, struct.error: its answer is invalid.
    """
    opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_GENERIC)
    try:
        opened.bind((0, 0))
        opened.settimeout(_ANSWER_S)
        family = _family(_ask(opened, _CONTROLLER, _GET_FAMILY, _FAMILY_NAME, b"TASKSTATS\0"))
        opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
        cpus = f"0-{(os.cpu_count() or 1) - 1}\0".encode("ascii")
        _ask(opened, family, _GET, _LISTEN_TO_CPUS, cpus)
        opened.setblocking(False)
    except BaseException:
        opened.close()
        raise
    return opened


def _ask(opened: socket.socket, family: int, command: int, attribute: int, value: bytes) -> bytes:
    """Sends a request; returns the answer's payload, empty for an acknowledgement."""
    body = struct.pack("=BBH", command, 1, 0) + struct.pack("=HH", 4 + len(value), attribute) + value
    body += bytes(-len(body) % 4)
    opened.send(struct.pack("=IHHII", 16 + len(body), family, _REQUEST_WITH_ANSWER, 1, 0) + body)
    answer = opened.recv(1 << 16)
    (kind,) = struct.unpack_from("=H", answer, 4)
    if kind != _ERROR:
        opened.recv(1 << 16)  # the acknowledgement
        return answer[20:]
    (error,) = struct.unpack_from("=i", answer, 16)
    if error:
        raise OSError(-error, os.strerror(-error))
    return b""


def _family(attributes: bytes) -> int:
    for kind, value in _attributes(attributes):
        if kind == _FAMILY_ID:
            return int(struct.unpack("=H", value)[0])
    raise ValueError("the kernel did not name its family of messages")


def _parse_exits(message: bytes) -> Iterator[TaskExit]:
    """Records of threads in a message; the kernel's records of whole processes lack most counts."""
    for kind, nested in _attributes(message[20:]):
        if kind == _OF_THREAD:
            for inner, record in _attributes(nested):
                if inner == _STATISTICS and len(record) >= _SHORTEST:
                    yield _parse_record(record)


def _parse_record(record: bytes) -> TaskExit:
    found = {name: int(struct.unpack_from(form, record, place)[0]) for name, (form, place) in _FIELDS.items()}
    return TaskExit(
        tid=found["pid"],
        name=record[_NAME].split(b"\0")[0].decode("utf-8", "replace"),
        pid=found["process"],
        parent=found["parent"],
        cpu_ns=found["cpu_ns"],
        switches=found["voluntary"] + found["involuntary"],
        faults=found["minor_faults"] + found["major_faults"],
        peak_bytes=found["peak_kib"] * _KIB,
    )


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    place = 0
    while place + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, place)
        if length < 4:
            return
        yield kind & ~_NESTED, data[place + 4 : place + length]
        place += -(-length // 4) * 4
