"""The router of rmw_zenoh_cpp, through which nodes find each other: one for each run, on loopback alone.

The settings of the user's own (``ZENOH_SESSION_CONFIG_URI``, ``ZENOH_ROUTER_CONFIG_URI``, ``ZENOH_CONFIG_OVERRIDE``)
stay, but for where a run's nodes and its router listen and connect.

Reference: rmw_zenoh's README; Zenoh's default configuration, ``DEFAULT_CONFIG.json5``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from pytest_ldos.base.errors import BringUpFailed
from pytest_ldos.host.processes import Child, ProcessGroup
from pytest_ldos.host.ros import find_ros_package, find_ros_packages
from pytest_ldos.robot.dds.domain import LOOPBACK

ZENOH: Final = "rmw_zenoh_cpp"

_OVERRIDE: Final = "ZENOH_CONFIG_OVERRIDE"

ZENOH_SETTINGS: Final = ("ZENOH_SESSION_CONFIG_URI", "ZENOH_ROUTER_CONFIG_URI", _OVERRIDE)
"""The user's settings of Zenoh; they belong to what is measured."""

PROGRAM: Final = "rmw_zenohd"

_READY_TIMEOUT_S: Final = 20.0
_POLL_S: Final = 0.02

_ALONE: Final = 'listen/endpoints=["tcp/127.0.0.1:0"];scouting/multicast/enabled=false'
"""Listens on a port that the kernel chooses, and answers no other machine."""


@dataclass(frozen=True)
class ZenohRouter:
    """A running router.

    Attributes:
        environment: variables with which nodes use it.
    """

    environment: Mapping[str, str]
    group: ProcessGroup

    @property
    def process(self) -> Child:
        return self.group.children[0]


@contextmanager
def zenoh_router(environment: Mapping[str, str], *, log_directory: Path) -> Iterator[ZenohRouter]:
    """Runs a router until the context ends.

    Args:
        environment: of the nodes.

    Raises:
        Unavailable: rmw_zenoh_cpp is not sourced.
        BringUpFailed: the router ended, or did not listen in time.
    """
    find_ros_packages([ZENOH], environment=environment).demand()
    prefix = find_ros_package(ZENOH, environment)
    assert prefix is not None
    own = _with_settings(environment, _ALONE, "connect/endpoints=[]")
    group = ProcessGroup(log_directory=log_directory, environment={**environment, **own})
    try:
        router = group.start(PROGRAM, [str(prefix / "lib" / ZENOH / PROGRAM)])
        port = _await_port(router)
        yield ZenohRouter(_with_settings(environment, _ALONE, f'connect/endpoints=["tcp/{LOOPBACK}:{port}"]'), group)
    finally:
        group.stop()


def _with_settings(environment: Mapping[str, str], *settings: str) -> dict[str, str]:
    """The user's overrides with ours behind them, which win."""
    return {_OVERRIDE: ";".join(filter(None, (environment.get(_OVERRIDE, "").strip(" ;"), *settings)))}


def _await_port(router: Child) -> int:
    """Returns the port on which the router listens."""
    deadline = time.monotonic() + _READY_TIMEOUT_S
    while router.exit_code is None and time.monotonic() < deadline:
        ports = _listening_ports(router.pid)
        if ports:
            return ports[0]
        time.sleep(_POLL_S)
    reason = f"{PROGRAM} did not listen within {_READY_TIMEOUT_S:.0f} s"
    raise BringUpFailed(
        f"Zenoh's router did not start: {reason if router.exit_code is None else router.describe_end()}",
        details=router.last_lines(),
        remedy=f"check the settings of Zenoh in the environment: {', '.join(ZENOH_SETTINGS)}",
    )


def _listening_ports(pid: int) -> list[int]:
    try:
        connections = psutil.Process(pid).net_connections(kind="tcp")
    except psutil.NoSuchProcess:
        return []
    return [each.laddr.port for each in connections if each.status == psutil.CONN_LISTEN]
