"""DDS domains on loopback: one for each run, claimed for as long as the run lives."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from xml.sax.saxutils import escape

from pytest_ldos.errors import Unavailable

FIRST_DOMAIN: Final = 1
LAST_DOMAIN: Final = 101
"""Above it, the ports of a domain reach into Linux's ephemeral range (`ROS_DOMAIN_ID` docs)."""

MOST_PARTICIPANTS: Final = 60
"""Processes on one domain; each has two ports of its 250-port range."""

_PORT_BASE: Final = 7400
_PORT_GAIN: Final = 250
_PARTICIPANT_PORT: Final = 10


def loopback_config(log_file: str | None = None) -> str:
    """Cyclone DDS configuration that never leaves this machine; see also `loopback.bound_to_loopback`.

    Discovery is by unicast, as multicast on `lo` is off by default on Linux; participants look for each other on all
    ports of the domain. Its peer is an address, because a machine need not have the name `localhost`.
    """
    tracing = "" if log_file is None else f"<Tracing><OutputFile>{escape(log_file)}</OutputFile></Tracing>"
    return (
        '<CycloneDDS><Domain id="any">'
        '<General><Interfaces><NetworkInterface name="lo" multicast="false"/></Interfaces>'
        "<AllowMulticast>false</AllowMulticast></General>"
        '<Discovery><Peers><Peer address="127.0.0.1"/></Peers>'
        f"<ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>{MOST_PARTICIPANTS}"
        f"</MaxAutoParticipantIndex></Discovery>{tracing}</Domain></CycloneDDS>"
    )


def ports_of(domain: int) -> range:
    """UDP ports that belong to a domain; its participants take the lower ones.

    Reference: DDSI-RTPS 2.5, 9.6.2.3.
    """
    first = _PORT_BASE + _PORT_GAIN * domain
    return range(first, first + _PORT_GAIN)


@contextmanager
def claim_domain() -> Iterator[int]:
    """A domain id that nobody on this machine uses, kept from other runs until the end.

    The claim is an abstract socket, so it cannot outlive this process.

    Raises:
        Unavailable: every domain is taken.
    """
    candidates = list(range(FIRST_DOMAIN, LAST_DOMAIN + 1))
    random.SystemRandom().shuffle(candidates)
    for domain in candidates:
        if not _has_participant(domain) and (claim := _try_claim(domain)) is not None:
            with claim:
                yield domain
            return
    raise Unavailable(
        f"all DDS domains from {FIRST_DOMAIN} to {LAST_DOMAIN} are in use on this machine",
        remedy="end the runs or ROS 2 processes that hold them",
    )


def _try_claim(domain: int) -> socket.socket | None:
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claim.bind(f"\0ldos-dds-domain-{domain}")
    except OSError:
        claim.close()
        return None
    return claim


def _has_participant(domain: int) -> bool:
    """Whether something listens on the port of the domain's first participant."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("127.0.0.1", ports_of(domain)[_PARTICIPANT_PORT]))
        except OSError:
            return True
    return False
