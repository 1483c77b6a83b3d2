"""CPU time, peak memory, context switches and page faults of processes during a time span.

A process that ended within the span counts up to its end if the kernel reports exits: that needs ``CAP_NET_ADMIN``, the
initial user and PID namespaces, and Linux 5.19, whose records have the pid of a thread's process.

Reference: ``proc(5)``; ``clock_getcpuclockid(3)``; Linux ``Documentation/accounting/taskstats.rst``.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pytest_ldos.host.counters import Key, process_cpu_ns, read_process_times
from pytest_ldos.host.cpu import read_fields, read_setting

_NETLINK_GENERIC: Final = 16
_SO_RCVBUFFORCE: Final = 33
_BUFFER: Final = 8 << 20  # socket buffer in bytes; a record takes 1000 to 2000
_ANSWER_S: Final = 2.0

_CONTROLLER, _GET_FAMILY, _FAMILY_ID, _FAMILY_NAME = 16, 3, 1, 2
_REQUEST_WITH_ANSWER: Final = 1 | 4
_ERROR: Final = 2
_GET, _LISTEN_TO_CPUS = 1, 3
_OF_THREAD, _STATISTICS = 4, 3
_NESTED: Final = 0x8000
_KIB: Final = 1024

_TASKSTATS: Final = struct.Struct("=72xQ32s16x2I32x2Q16xQ64x2Q80xI")
"""Begin of ``struct taskstats``, which the kernel extends only at its end: CPU time, name, thread, parent, minor and
major faults, peak of memory, voluntary and involuntary switches, process."""


@dataclass(frozen=True, kw_only=True)
class ThreadUse:
    """Resource use of a thread, in a span or since its start; `cpu_ns` is ``None`` if the kernel does not count it."""

    name: str
    cpu_ns: int | None
    switches: int
    faults: int

    def since(self, before: ThreadUse) -> ThreadUse:
        cpu_ns = None if self.cpu_ns is None or before.cpu_ns is None else self.cpu_ns - before.cpu_ns
        switches, faults = self.switches - before.switches, self.faults - before.faults
        return ThreadUse(name=self.name, cpu_ns=cpu_ns, switches=switches, faults=faults)


@dataclass(frozen=True, kw_only=True)
class TaskExit(ThreadUse):
    """Exit record of a thread, with counts over its lifetime, and the peak of its process's resident memory."""

    tid: int
    pid: int
    parent: int
    peak_bytes: int


class TaskExits(AbstractContextManager["TaskExits"]):
    """Receives an exit record of each thread on this machine; not `is_whole` if the kernel refuses or dropped some."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        with contextlib.suppress(OSError, ValueError, struct.error):
            self._socket = _listen()
        self.is_whole = self._socket is not None

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

    def __exit__(self, *_: object) -> None:
        self.close()


def _listen() -> socket.socket:
    """Opens a socket for the records of all CPUs; raises `OSError`, `ValueError` or `struct.error` if refused."""
    opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_GENERIC)
    try:
        opened.bind((0, 0))
        opened.settimeout(_ANSWER_S)
        answer = _attributes(_ask(opened, _CONTROLLER, _GET_FAMILY, _FAMILY_NAME, b"TASKSTATS\0"))
        (family,) = struct.unpack("=H", dict(answer).get(_FAMILY_ID, b""))
        opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
        _ask(opened, family, _GET, _LISTEN_TO_CPUS, f"0-{(os.cpu_count() or 1) - 1}\0".encode("ascii"))
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


def _parse_exits(message: bytes) -> Iterator[TaskExit]:
    """Records of threads in a message; the kernel's records of whole processes lack most counts."""
    for kind, nested in _attributes(message[20:]):
        if kind == _OF_THREAD:
            for inner, record in _attributes(nested):
                if inner != _STATISTICS or len(record) < _TASKSTATS.size:
                    continue
                cpu_ns, name, tid, parent, minor, major, peak_kib, *switches, pid = _TASKSTATS.unpack_from(record)
                yield TaskExit(
                    tid=tid,
                    name=name.split(b"\0")[0].decode("utf-8", "replace"),
                    pid=pid,
                    parent=parent,
                    cpu_ns=cpu_ns,
                    switches=sum(switches),
                    faults=minor + major,
                    peak_bytes=peak_kib * _KIB,
                )


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    place = 0
    while place + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, place)
        if length < 4:
            return
        yield kind & ~_NESTED, data[place + 4 : place + length]
        place += -(-length // 4) * 4


Names = Mapping[int, str]  # names of a stack's processes, by pid
_SWITCHES: Final = ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")


@dataclass(frozen=True, kw_only=True)
class ProcessUse:
    """Resource use of a process in a span, within which it may have begun or ended."""

    name: str  # name in the stack; a child process has its parent's
    pid: int
    has_begun: bool
    cpu_ns: int
    switches: int
    faults: int
    peak_bytes: int  # peak of private memory, without file pages and shared memory such as the tracer's buffers
    resident_bytes: int  # peak of resident memory
    grown_bytes: int  # growth of private memory over the span
    # False if the kernel could not reset the peak, which is then the larger value at the ends
    is_peak_known: bool = True
    has_ended: bool = False
    threads: tuple[ThreadUse, ...] = ()


@dataclass(frozen=True)
class StackUse:
    """Resource use of a stack's processes in a span; `lost` names those, by pid, that ended with unknown use."""

    processes: tuple[ProcessUse, ...]
    lost: Mapping[int, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return sorted({*(each.name for each in self.processes), *self.lost.values()})


@dataclass(frozen=True)
class _Process:
    name: str
    cpu_ns: int
    faults: int
    private_bytes: int
    shared_bytes: int
    peak_bytes: int
    threads: Mapping[str, ThreadUse] = field(default_factory=dict)

    @property
    def resident_bytes(self) -> int:
        return self.private_bytes + self.shared_bytes


_NOTHING: Final = _Process("", 0, 0, 0, 0, 0)
_NO_THREAD: Final = ThreadUse(name="", cpu_ns=0, switches=0, faults=0)


class ResourceMeter(ExitStack):
    """Measures resource use from its creation until it is closed; at its beginning, the peaks of memory are reset.

    `processes` returns a stack's running processes, by pid, at both ends of the span; `all_processes` also ended ones.
    """

    def __init__(self, processes: Callable[[], Names], all_processes: Callable[[], Names] = dict) -> None:
        super().__init__()
        self._processes = processes
        self._all_processes = all_processes
        self._ends = self.enter_context(TaskExits())
        self._exits: list[TaskExit] = []
        named = processes()
        self._named = frozenset(named)
        self._before = _read_all(named)
        self._is_reset = {key for key in self._before if _reset_peak(key[0])}

    def measure(self) -> StackUse:
        now = _read_all(self._processes())
        self._exits += self._ends.take()
        ended = self._ended(now)
        known = {each.pid for each in ended} if self._ends.is_whole else set()
        gone = {key[0]: each.name for key, each in self._before.items() if key not in now and key[0] in self._named}
        return StackUse(
            (*(self._use(key, each) for key, each in now.items()), *ended),
            {pid: name for pid, name in gone.items() if pid not in known},
        )

    def _use(self, key: Key, now: _Process) -> ProcessUse:
        before = self._before.get(key, _NOTHING)
        is_peak_known = key in self._is_reset or key not in self._before
        resident = now.peak_bytes if is_peak_known else max(before.resident_bytes, now.resident_bytes)
        exits = ((str(each.tid), each) for each in self._exits if each.pid == key[0])
        over = [(tid, each) for tid, each in exits if tid not in now.threads]
        threads = _uses(before, [*now.threads.items(), *over])
        return ProcessUse(
            name=now.name,
            pid=key[0],
            has_begun=key not in self._before,
            cpu_ns=max(0, now.cpu_ns - before.cpu_ns),
            switches=sum(each.switches for each in threads),
            faults=now.faults - before.faults,
            peak_bytes=max(resident - now.shared_bytes, now.private_bytes),
            resident_bytes=resident,
            grown_bytes=now.private_bytes - before.private_bytes,
            is_peak_known=is_peak_known,
            threads=threads,
        )

    def _ended(self, now: Mapping[Key, _Process]) -> list[ProcessUse]:
        running = {key[0] for key in now}
        before = {key[0]: each for key, each in self._before.items() if key[0] not in running}
        exits: dict[int, list[TaskExit]] = {}
        for each in self._exits:
            if each.pid not in running:
                exits.setdefault(each.pid, []).append(each)
        names = dict(self._all_processes())
        names.update({key[0]: each.name for known in (self._before, now) for key, each in known.items()})
        parents = {pid: threads[0].parent for pid, threads in exits.items()}
        shared = {each.name: each.shared_bytes for known in (self._before, now) for each in known.values()}
        found = []
        for pid, threads in exits.items():
            name = _name_of(pid, names, parents)
            if name is None or all(each.tid != pid for each in threads):
                continue
            first = before.get(pid, _Process(name, 0, 0, 0, shared.get(name, 0), 0))
            uses = _uses(first, ((str(each.tid), each) for each in threads))
            resident = max(each.peak_bytes for each in threads)
            found.append(
                ProcessUse(
                    name=first.name,
                    pid=pid,
                    has_begun=pid not in before,
                    has_ended=True,
                    cpu_ns=sum(each.cpu_ns or 0 for each in uses),
                    switches=sum(each.switches for each in uses),
                    faults=sum(each.faults for each in uses),
                    peak_bytes=max(resident - first.shared_bytes, 0),
                    resident_bytes=resident,
                    grown_bytes=-first.private_bytes,
                    threads=uses,
                )
            )
        return found


def _name_of(pid: int | None, names: Names, parents: Mapping[int, int]) -> str | None:
    """Name of a process, or of its nearest named ancestor."""
    for _ in range(len(parents) + 1):
        if pid is None or pid in names:
            break
        pid = parents.get(pid)
    return None if pid is None else names.get(pid)


def _uses(process: _Process, threads: Iterable[tuple[str, ThreadUse]]) -> tuple[ThreadUse, ...]:
    """Use of threads by id since the begin of the span, up to now or to their exits."""
    return tuple(now.since(process.threads.get(tid, _NO_THREAD)) for tid, now in threads)


def _read_all(names: Names) -> dict[Key, _Process]:
    found = {}
    times = read_process_times()
    parents = {key[0]: each.parent for key, each in times.items()}
    for key in times:
        name = _name_of(key[0], names, parents)
        if name is not None:
            with contextlib.suppress(OSError, ValueError, IndexError, KeyError):  # it has ended
                found[key] = _read(key[0], name)
    return found


def _read(pid: int, name: str) -> _Process:
    folder = Path(f"/proc/{pid}")
    status = read_fields(folder / "status")
    sizes = {key: int(status[key].split()[0]) * _KIB for key in ("RssAnon", "RssFile", "RssShmem", "VmHWM")}
    threads = {}
    for task in (folder / "task").iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError, KeyError):  # the thread has ended
            own, cpu = read_fields(task / "status"), read_setting(task / "schedstat").split()
            threads[task.name] = ThreadUse(
                name=own["Name"],
                cpu_ns=int(cpu[0]) if cpu else None,
                switches=sum(int(own[key]) for key in _SWITCHES),
                faults=_faults(task / "stat"),
            )
    return _Process(
        name=name,
        cpu_ns=process_cpu_ns(pid),
        faults=_faults(folder / "stat"),
        private_bytes=sizes["RssAnon"],
        shared_bytes=sizes["RssFile"] + sizes["RssShmem"],
        peak_bytes=sizes["VmHWM"],
        threads=threads,
    )


def _faults(file: Path) -> int:
    """Minor and major page faults."""
    fields = read_setting(file).rpartition(")")[2].split()
    return int(fields[7]) + int(fields[9])


def _reset_peak(pid: int) -> bool:
    try:
        Path(f"/proc/{pid}/clear_refs").write_text("5", "ascii")
    except OSError:
        return False
    return True
