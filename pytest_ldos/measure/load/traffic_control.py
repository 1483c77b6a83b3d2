"""Traffic control on loopback.

A ``prio`` qdisc with two bands is attached to ``lo``: traffic to the ports takes the second band, which has a
``netem`` qdisc; other traffic takes the first band, unchanged. Run as a program, this module removes only its own
qdiscs.

Reference: ``tc-prio(8)``, ``tc-netem(8)``, ``tc-u32(8)``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pytest_ldos.base.errors import LoadFailed, Unavailable
from pytest_ldos.base.text import one_line
from pytest_ldos.host.availability import Availability, run_program
from pytest_ldos.host.counters import has_capability
from pytest_ldos.scenario.loads import NetworkImpairmentSpec

DEVICE: Final = "lo"
ROOT: Final = "1da5:"
NETEM: Final = "1da6:"  # handles of our qdiscs, by which they are recognized
REMOVAL: Final = (sys.executable, "-m", "pytest_ldos.measure.load.traffic_control")

_IMPAIRED: Final = f"{ROOT}2"
_MOST_PACKETS: Final = 100_000  # queue of netem; the default of 1000 would drop packets with long delays
_TIMEOUT_S: Final = 10.0
_ALL_PORTS: Final = 1 << 16
_CAP_NET_ADMIN: Final = 12
_KERNEL_DEFAULT: Final = "0:"
_SUPERUSER_PATHS: Final = ("/usr/sbin", "/sbin")
_OTHER_USER: Final = ("--user", "--map-root-user")


@dataclass(frozen=True)
class NetemCounters:
    """Packets that left netem, that it dropped, and that are in its queue."""

    packets: int
    drops: int
    waiting: int = 0

    @property
    def entered(self) -> int:
        return self.packets + self.drops + self.waiting


def impairing_commands(spec: NetworkImpairmentSpec, ports: range) -> list[list[str]]:
    every_band_the_first = ["0"] * 16
    words = ["limit", str(_MOST_PACKETS)]
    if spec.delay_ms:
        words += ["delay", f"{spec.delay_ms * 1000:.0f}us"]
        words += [f"{spec.jitter_ms * 1000:.0f}us"] if spec.jitter_ms else []
    words += ["loss", f"{spec.loss_percent:g}%"] if spec.loss_percent else []
    words += ["rate", f"{spec.rate_mbps * 1000:.0f}kbit"] if spec.rate_mbps else []
    return [
        ["qdisc", "add", "dev", DEVICE, "root", "handle", ROOT, "prio", "bands", "2", "priomap", *every_band_the_first],
        ["qdisc", "add", "dev", DEVICE, "parent", _IMPAIRED, "handle", NETEM, "netem", *words],
        *(_filter_words(first, mask) for first, mask in mask_blocks(ports)),
    ]


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
    """Runs ``tc`` for each command; raises `LoadFailed` if it refuses one."""
    for arguments in commands:
        done = _run_tc(arguments)
        if done.returncode:
            raise LoadFailed(
                f"tc refused: {_words_of(done)}",
                remedy="look at the kernel's modules for traffic control (sch_prio, sch_netem, cls_u32)",
                details=f"tc {' '.join(arguments)}",
            )


def remove_impairment() -> None:
    """Removes our qdiscs from loopback, if there are any; raises `LoadFailed` if that fails."""
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
    """Reports if this process can impair loopback; tries kernel modules in a separate network namespace."""
    if _find_tc() is None:
        return Availability(False, "tc not found", "sudo apt-get install iproute2")
    if not has_capability(_CAP_NET_ADMIN):
        return Availability(
            False,
            "no permission to change the network (CAP_NET_ADMIN)",
            "run as root, or in a container with --cap-add NET_ADMIN",
        )
    foreign = [f"{qdisc['kind']} {qdisc['handle']}" for qdisc in _qdiscs() if qdisc.get("handle") != _KERNEL_DEFAULT]
    if foreign:
        return Availability(
            False,
            f"{DEVICE} already has traffic control that is not ours to change: {one_line(', '.join(foreign))}",
            f"remove it (sudo tc qdisc del dev {DEVICE} root), or measure in a network namespace",
        )
    return next((each for each in _kernel_parts() if not each.ok), Availability(True))


def _kernel_parts() -> Iterator[Availability]:
    root = ["qdisc", "add", "dev", DEVICE, "root", "handle", ROOT]
    prio = [*root, "prio"]
    for part, commands in {
        "sch_netem": [[*root, "netem", "delay", "1ms"]],
        "sch_prio": [prio],
        "cls_u32": [prio, _filter_words(0, 0xFFFF)],
    }.items():
        refusal = _refusal_elsewhere(commands)
        remedy = (
            f"sudo modprobe {part}; Ubuntu has it in linux-modules-extra-$(uname -r), "
            "kernels without modules must be built with it"
        )
        reason = f"this kernel has no {part} (tc says: {refusal})"
        yield Availability(False, reason, remedy) if refusal else Availability(True)


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
    """Returns the qdiscs of loopback; raises `LoadFailed` if ``tc`` does not list them."""
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
        return run_program(command, given=text, timeout_s=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise LoadFailed(f"{command[0]} did not end within {_TIMEOUT_S:.0f} s") from None


def _find_tc() -> str | None:
    """Searches also folders that are often on root's path only."""
    return shutil.which("tc", path=os.pathsep.join([os.environ.get("PATH", os.defpath), *_SUPERUSER_PATHS]))


def _words_of(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("Command failed")]
    return one_line(" ".join(lines)) or f"exit code {done.returncode}"


if __name__ == "__main__":
    try:
        remove_impairment()
    except (LoadFailed, Unavailable) as error:
        sys.exit(str(error))
