"""Checks of discovery: processes of other machines that can join our domain.

Reference: ROS 2 Jazzy, "Improved Dynamic Discovery" (the variables), "Using Fast DDS Discovery Server"
and "The ROS_DOMAIN_ID" (0–101 are safe on every system; 232 is the last that has ports).
"""

from __future__ import annotations

from typing import Final

from pytest_ldos.doctor.finding import Finding, ok, warning
from pytest_ldos.doctor.machine import Machine

LAST_DOMAIN: Final = 232
SAFE_DOMAIN: Final = 101
_RANGE: Final = "ROS_AUTOMATIC_DISCOVERY_RANGE"
_PEERS: Final = "ROS_STATIC_PEERS"
_SERVER: Final = "ROS_DISCOVERY_SERVER"
_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def check_domain(machine: Machine) -> Finding:
    value = machine.environment.get("ROS_DOMAIN_ID", "")
    title, remedy = "ROS_DOMAIN_ID", f"export ROS_DOMAIN_ID=0 … {SAFE_DOMAIN}"
    if value and not (value.isascii() and value.isdigit() and int(value) <= LAST_DOMAIN):
        return warning(title, f"{value!r} is no domain: no node of your own would start", remedy)
    if value and int(value) > SAFE_DOMAIN:
        return warning(title, f"{value}: its ports may be given to other programs", remedy)
    return ok(title, f"{value or 'not set (0)'}; a measured stack claims one of its own")


def check_discovery(machine: Machine) -> Finding:
    """Checks that other processes stay on this machine; a measured stack does, whatever is set."""
    reach = machine.environment.get(_RANGE, "")
    peers = [peer for peer in machine.environment.get(_PEERS, "").split(";") if peer]
    title, remedy = "discovery", f"export {_RANGE}=LOCALHOST"
    strangers = [peer for peer in peers if peer not in _LOCAL]
    if server := machine.environment.get(_SERVER, ""):
        return warning(title, f"{_SERVER}={server}: Fast DDS meets whom that server knows", f"unset {_SERVER}")
    if machine.environment.get("ROS_LOCALHOST_ONLY") == "1":
        return ok(title, f"this machine only (ROS_LOCALHOST_ONLY, deprecated: {remedy})")
    if reach == "OFF":
        return warning(title, f"{_RANGE}=OFF: nodes of your own cannot find each other", remedy)
    if strangers:
        return warning(title, f"{_PEERS} names other machines: {', '.join(strangers)}", f"unset {_PEERS}")
    if reach == "LOCALHOST":
        return ok(title, "this machine only")
    named = f"{_RANGE}={reach}" if reach else f"{_RANGE} is not set"
    return warning(title, f"{named}: other machines can join nodes of your own", f"{remedy}, after sourcing ROS 2")
