"""Traffic control on loopback, and probes that measure its effect.

A ``prio`` qdisc with two bands is attached to ``lo``: traffic to the ports takes the second band, which has a
``netem`` qdisc; other traffic takes the first band, unchanged. Run as a program, this module removes only its own
qdiscs.

Reference: ``tc-prio(8)``, ``tc-netem(8)``, ``tc-u32(8)``.

Pairs of probes are sent to a port that no participant uses. The kernel stamps their arrival, so that delays in reading
them do not matter.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import LoadFailed, Unavailable
from pytest_ldos.base.text import NS_PER_S, one_line
from pytest_ldos.host.availability import Availability
from pytest_ldos.scenario.loads.spec import NetworkImpairmentSpec

DEVICE: Final = "lo"
ROOT: Final = "1da5:"
NETEM: Final = "1da6:"
"""Handles of our qdiscs, by which they are recognized."""

REMOVAL: Final = (sys.executable, "-m", "pytest_ldos.measure.load.traffic_control")

_IMPAIRED: Final = f"{ROOT}2"
_MOST_PACKETS: Final = 100_000
"""Queue length of netem in packets; the default of 1000 would drop packets with long delays."""

_TIMEOUT_S: Final = 10.0
_ALL_PORTS: Final = 1 << 16
_CAP_NET_ADMIN: Final = 12
_KERNEL_DEFAULT: Final = "0:"
_SUPERUSER_PATHS: Final = ("/usr/sbin", "/sbin")
_OTHER_USER: Final = ("--user", "--map-root-user")


@dataclass(frozen=True)
class NetemCounters:
    """Counters of the netem qdisc.

    Attributes:
        packets: packets that left it.
        drops: packets that it dropped.
        waiting: packets in its queue.
    """

    packets: int
    drops: int
    waiting: int = 0

    @property
    def entered(self) -> int:
        return self.packets + self.drops + self.waiting


def impairing_commands(spec: NetworkImpairmentSpec, ports: range) -> list[list[str]]:
    """Returns the arguments of the ``tc`` commands, in order."""
    every_band_the_first = ["0"] * 16
    return [
        ["qdisc", "add", "dev", DEVICE, "root", "handle", ROOT, "prio", "bands", "2", "priomap", *every_band_the_first],
        ["qdisc", "add", "dev", DEVICE, "parent", _IMPAIRED, "handle", NETEM, "netem", *_netem_words(spec)],
        *(_filter_words(first, mask) for first, mask in mask_blocks(ports)),
    ]


def _netem_words(spec: NetworkImpairmentSpec) -> list[str]:
    words = ["limit", str(_MOST_PACKETS)]
    if spec.delay_ms:
        words += ["delay", f"{spec.delay_ms * 1000:.0f}us"]
        words += [f"{spec.jitter_ms * 1000:.0f}us"] if spec.jitter_ms else []
    words += ["loss", f"{spec.loss_percent:g}%"] if spec.loss_percent else []
    words += ["rate", f"{spec.rate_mbps * 1000:.0f}kbit"] if spec.rate_mbps else []
    return words


def _filter_words(port: int, mask: int) -> list[str]:
    matches = ["match", "ip", "protocol", "17", "0xff", "match", "ip", "dport", str(port), f"0x{mask:04x}"]
    place = ["filter", "add", "dev", DEVICE, "parent", ROOT, "protocol", "ip", "prio", "1", "u32"]
    return [*place, *matches, "flowid", _IMPAIRED]


def mask_blocks(ports: range) -> Iterator[tuple[int, int]]:
    """Yields the fewest (port, 16-bit mask) pairs that match exactly these ports."""
    first = ports.start
    while first < ports.stop:
        size = first & -first or _ALL_PORTS  # 0 is a multiple of every size
        while first + size > ports.stop:
            size //= 2
        yield first, (_ALL_PORTS - 1) & ~(size - 1)
        first += size


def apply_commands(commands: Sequence[Sequence[str]]) -> None:
    """Runs ``tc`` for each command.

    Raises:
        LoadFailed: ``tc`` refused a command.
    """
    for arguments in commands:
        done = _run_tc(arguments)
        if done.returncode:
            raise LoadFailed(
                f"tc refused: {_words_of(done)}",
                remedy="look at the kernel's modules for traffic control (sch_prio, sch_netem, cls_u32)",
                details=f"tc {' '.join(arguments)}",
            )


def remove_impairment() -> None:
    """Removes our qdiscs from loopback; does nothing if there are none.

    Raises:
        LoadFailed: they cannot be removed.
    """
    if any(qdisc.get("handle") == ROOT for qdisc in _qdiscs()):
        apply_commands([["qdisc", "del", "dev", DEVICE, "root", "handle", ROOT]])


def read_counters() -> NetemCounters | None:
    """Returns the counters of our netem; ``None`` if it is gone."""
    for qdisc in _qdiscs():
        if qdisc.get("handle") == NETEM:
            return NetemCounters(*(int(qdisc.get(name, 0)) for name in ("packets", "drops", "qlen")))
    return None


def is_impaired() -> bool:
    """Returns True if loopback has our netem; False without a working ``tc``."""
    try:
        return read_counters() is not None
    except (Unavailable, LoadFailed):
        return False


def traffic_control_available() -> Availability:
    """Reports if this process can impair loopback: program, permission, unmodified ``lo``, kernel modules.

    Kernel modules are tried in a separate network namespace, without side effects.
    """
    if _find_tc() is None:
        return Availability(False, "tc not found", "sudo apt-get install iproute2")
    if not _has_capability(_CAP_NET_ADMIN):
        return Availability(
            False,
            "no permission to change the network (CAP_NET_ADMIN)",
            "run as root, or in a container with --cap-add NET_ADMIN",
        )
    return next((each for each in (_loopback_untouched(), *_kernel_parts()) if not each.ok), Availability(True))


def _loopback_untouched() -> Availability:
    foreign = [f"{qdisc['kind']} {qdisc['handle']}" for qdisc in _qdiscs() if qdisc.get("handle") != _KERNEL_DEFAULT]
    if not foreign:
        return Availability(True)
    return Availability(
        False,
        f"{DEVICE} already has traffic control that is not ours to change: {one_line(', '.join(foreign))}",
        f"remove it (sudo tc qdisc del dev {DEVICE} root), or measure in a network namespace",
    )


def _kernel_parts() -> Iterator[Availability]:
    """Yields the availability of each required kernel module, as far as it can be tried."""
    root = ["qdisc", "add", "dev", DEVICE, "root", "handle", ROOT]
    prio = [*root, "prio"]
    for part, commands in {
        "sch_netem": [[*root, "netem", "delay", "1ms"]],
        "sch_prio": [prio],
        "cls_u32": [prio, _filter_words(0, 0xFFFF)],
    }.items():
        refusal = _refusal_elsewhere(commands)
        yield (
            Availability(True)
            if not refusal
            else Availability(
                False,
                f"this kernel has no {part} (tc says: {refusal})",
                f"sudo modprobe {part}; Ubuntu has it in linux-modules-extra-$(uname -r), "
                "kernels without modules must be built with it",
            )
        )


def _refusal_elsewhere(commands: Sequence[Sequence[str]]) -> str:
    """Returns ``tc``'s error for these commands in a separate namespace; empty if none can be created."""
    tc, unshare = _find_tc(), shutil.which("unshare")
    if tc is None or unshare is None:
        return ""
    batch = "".join(f"{' '.join(arguments)}\n" for arguments in commands)
    for user in ((), _OTHER_USER):
        done = _run([unshare, *user, "--net", "--", tc, "-batch", "-"], text=batch)
        if not done.stderr.startswith("unshare:"):
            return _words_of(done) if done.returncode else ""
    return ""


def _qdiscs() -> list[dict[str, Any]]:
    """Returns the qdiscs of loopback.

    Raises:
        LoadFailed: ``tc`` does not list them.
    """
    done = _run_tc(["-s", "-j", "qdisc", "show", "dev", DEVICE])
    try:
        return list(json.loads(done.stdout))
    except ValueError:
        raise LoadFailed(f"tc does not show the qdiscs of {DEVICE}: {_words_of(done)}") from None


def _run_tc(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    tc = _find_tc()
    if tc is None:
        raise Unavailable("tc not found", remedy="sudo apt-get install iproute2")
    return _run([tc, *arguments])


def _run(command: Sequence[str], *, text: str = "") -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            input=text,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LoadFailed(f"{command[0]} did not end within {_TIMEOUT_S:.0f} s") from None


def _find_tc() -> str | None:
    """Also searches its usual folders, which are often on root's path only."""
    return shutil.which("tc", path=os.pathsep.join([os.environ.get("PATH", os.defpath), *_SUPERUSER_PATHS]))


def _words_of(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("Command failed")]
    return one_line(" ".join(lines)) or f"exit code {done.returncode}"


def _has_capability(number: int) -> bool:
    status = Path("/proc/self/status").read_text("ascii", errors="replace")
    effective = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective, 16) >> number & 1)


def main() -> int:
    try:
        remove_impairment()
    except (LoadFailed, Unavailable) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())


PAYLOAD_BYTES: Final = 200
WIRE_BITS: Final = 8 * (PAYLOAD_BYTES + 8 + 20 + 14)
"""Size of a queued probe, with UDP, IP and Ethernet headers."""

_NUMBER: Final = struct.Struct("<Q")
_STAMP: Final = struct.Struct("@qq")
_SO_TIMESTAMPNS: Final = 35
_READ_TIMEOUT_S: Final = 0.1


@dataclass(frozen=True)
class Crossing:
    """Results of the probes.

    Attributes:
        sent, lost: probes past their time limit, and those that did not arrive by then.
        delays_ns: one-way delays of the received probes, in the order of sending.
        gaps_ns: time between the two probes of a pair, if both arrived.
    """

    sent: int
    lost: int
    delays_ns: tuple[int, ...]
    gaps_ns: tuple[int, ...]


class NetworkProbe:
    """Sends and receives pairs of probes, in two threads.

    Args:
        interval_s: time between two pairs.
        patience_s: time limit after which a probe counts as lost.
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
        """Results of the probes past their time limit."""
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
    """Sends probes inside the ``with`` block.

    Raises:
        LoadFailed: no port is free.
    """
    probe = NetworkProbe(ports, interval_s=interval_s, patience_s=patience_s)
    probe.start()
    try:
        yield probe
    finally:
        probe.stop()


def _bind_unused(ports: range) -> socket.socket:
    """Binds the last free port, because participants use the first ones."""
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
    """Kernel's receive time of a datagram; the current time without a stamp."""
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
            seconds, nanoseconds = _STAMP.unpack(data)
            return int(seconds) * NS_PER_S + int(nanoseconds)
    return time.time_ns()
