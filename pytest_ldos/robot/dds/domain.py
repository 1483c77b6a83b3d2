"""DDS domains on loopback, claimed for the duration of a run.

Middleware binds to every network interface: Cyclone DDS (up to 11.0.1) always, Fast DDS if ROS 2 limits discovery to
the machine. A preloaded library (``native/loopback.c``) drops everything that arrives from another interface.
"""

from __future__ import annotations

import errno
import os
import random
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

import psutil

import pytest_ldos.robot.dds
from pytest_ldos.base.errors import Unavailable
from pytest_ldos.base.text import one_line

FIRST_DOMAIN: Final = 1
LAST_DOMAIN: Final = 101  # largest domain id below Linux's ephemeral ports (`ROS_DOMAIN_ID` docs)

MOST_PARTICIPANTS: Final = 60  # largest number of processes on a domain; each has two of its 250 ports

LOOPBACK: Final = "127.0.0.1"

_PORT_BASE: Final = 7400
_PORT_GAIN: Final = 250
_PARTICIPANT_PORT: Final = 10


def loopback_config() -> str:
    """Cyclone DDS configuration limited to this machine; see also `bound_to_loopback`.

    Discovery is by unicast to all ports of the domain, because Linux disables multicast on `lo` by default. The peer is
    an address, because the name `localhost` may be undefined.
    """
    return (
        '<CycloneDDS><Domain id="any">'
        '<General><Interfaces><NetworkInterface name="lo" multicast="false"/></Interfaces>'
        "<AllowMulticast>false</AllowMulticast></General>"
        '<Discovery><Peers><Peer address="127.0.0.1"/></Peers>'
        f"<ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>{MOST_PARTICIPANTS}"
        f"</MaxAutoParticipantIndex></Discovery></Domain></CycloneDDS>"
    )


def ports_of(domain: int) -> range:
    """UDP ports that belong to a domain; its participants take the lower ones (DDSI-RTPS 2.5, 9.6.2.3)."""
    first = _PORT_BASE + _PORT_GAIN * domain
    return range(first, first + _PORT_GAIN)


@contextmanager
def claim_domain() -> Iterator[int]:
    """Claims an unused domain id of this machine inside the ``with`` block; raises `Unavailable` if all are in use.

    The claim is an abstract socket, so it cannot outlive this process.
    """
    candidates = list(range(FIRST_DOMAIN, LAST_DOMAIN + 1))
    random.SystemRandom().shuffle(candidates)
    for domain in candidates:
        if _taken_port(domain) is None:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as claim:
                try:
                    claim.bind(f"\0ldos-dds-domain-{domain}")
                except OSError:
                    continue
                yield domain
                return
    raise Unavailable(
        f"all DDS domains from {FIRST_DOMAIN} to {LAST_DOMAIN} are in use on this machine: {_describe_taken()}",
        remedy="end the runs, ROS 2 processes or other programs that hold them (ss -lunp lists them)",
    )


def _taken_port(domain: int) -> int | None:
    """The first needed port that another process holds; ``None`` if all are free."""
    first = ports_of(domain).start + _PARTICIPANT_PORT
    for port in range(first, first + 2 * MOST_PARTICIPANTS + 2):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    return port
    return None


def _describe_taken() -> str:
    port = next((port for domain in range(FIRST_DOMAIN, LAST_DOMAIN + 1) if (port := _taken_port(domain))), None)
    if port is None:
        return "other runs of pytest-ldos have claimed them"
    held = (each.pid for each in psutil.net_connections("udp") if each.laddr and each.laddr.port == port and each.pid)
    pid = next(held, None)
    if pid is None:
        return f"UDP port {port} is held by a process of another user"
    try:
        name = one_line(psutil.Process(pid).name())
    except psutil.NoSuchProcess:
        name = "which has ended"
    return f"UDP port {port} is held by pid {pid} ({name})"


_LIBRARY: Final = "libldos_loopback.so"
_PORTS: Final = "PYTEST_LDOS_LOOPBACK"


def bound_to_loopback() -> Mapping[str, str]:
    """Environment variables that bind sockets of processes with `loopback_config` to loopback."""
    first, last = ports_of(FIRST_DOMAIN).start, ports_of(LAST_DOMAIN).stop - 1
    return {**_preloaded(_library(), os.environ), _PORTS: f"{first}-{last},address"}


def deaf_to_other_devices(domain: int, environment: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Environment variables for other middleware on a domain, which may announce any address of this machine."""
    ports = ports_of(domain)
    return {**_preloaded(_library(), {**os.environ, **(environment or {})}), _PORTS: f"{ports.start}-{ports.stop - 1}"}


def _preloaded(library: Path, environment: Mapping[str, str]) -> Mapping[str, str]:
    """Environment variables that preload one more library; `LD_PRELOAD` cannot hold a path with spaces."""
    own = {"LD_PRELOAD": str(library)}
    if " " in str(library):
        own = {"LD_PRELOAD": library.name, "LD_LIBRARY_PATH": str(library.parent)}
    return {name: f"{value}:{others}" if (others := environment.get(name)) else value for name, value in own.items()}


@cache
def _library() -> Path:
    for folder in map(Path, pytest_ldos.robot.dds.__path__):
        if (folder / _LIBRARY).is_file():
            return folder / _LIBRARY
    raise Unavailable(
        f"pytest-ldos was built without {_LIBRARY}, which keeps DDS on this machine",
        remedy="build it again: make setup, or pip install --force-reinstall",
    )
