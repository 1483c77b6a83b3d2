"""Checks of UDP socket buffers: a packet that does not fit is lost, and reliable topics send it again."""

from __future__ import annotations

from typing import Final

from pytest_ldos.doctor.finding import Finding, ok, warning
from pytest_ldos.doctor.machine import Machine
from pytest_ldos.doctor.settings import SetValues

RECEIVE: Final = 2_147_483_647
"""Value of ``net.core.rmem_max`` for Cyclone DDS in ROS 2's guide "DDS tuning information"."""

ENOUGH_TO_RECEIVE: Final = 10_000_000
"""Minimum that Cyclone DDS then requests by the guide (``SocketReceiveBufferSize min="10MB"``)."""

SEND: Final = 12_582_912
"""Value of both limits in Fast DDS's manual, for large data rates."""

_NET: Final = "proc/sys/net/core"


def check_receive_buffer(machine: Machine) -> Finding:
    return _check(machine, "rmem_max", enough=ENOUGH_TO_RECEIVE, recommended=RECEIVE, source="ROS 2's DDS tuning guide")


def check_send_buffer(machine: Machine) -> Finding:
    return _check(machine, "wmem_max", enough=SEND, recommended=SEND, source="Fast DDS's manual")


def _check(machine: Machine, name: str, *, enough: int, recommended: int, source: str) -> Finding:
    place, title = f"{_NET}/{name}", f"UDP {'receive' if name.startswith('r') else 'send'} buffer"
    value = machine.read(place)
    remedy = f"sudo sysctl -w net.core.{name}={recommended}"
    if not value.isdigit():
        return warning(title, f"net.core.{name} is not to be seen in this network namespace", f"on the host: {remedy}")
    if int(value) >= enough:
        return ok(title, f"at most {_size(int(value))}")
    fix = SetValues(f"set net.core.{name} from {value} to {recommended}", {place: str(recommended)})
    return warning(title, f"at most {_size(int(value))}; {source} asks for {_size(enough)}", remedy, fix)


def _size(number: int) -> str:
    return f"{number / 1e6:.1f} MB" if number < 1e9 else f"{number / 1e9:.1f} GB"
