"""All checks, in the order of the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pytest_ldos.doctor import check_leftovers as sessions
from pytest_ldos.doctor import check_leftovers as strays
from pytest_ldos.doctor import check_machine as cpu
from pytest_ldos.doctor import check_machine as lttng
from pytest_ldos.doctor import check_machine as packages
from pytest_ldos.doctor import check_machine as realtime
from pytest_ldos.doctor import check_machine as storage
from pytest_ldos.doctor import check_machine as switches
from pytest_ldos.doctor import check_ros as discovery
from pytest_ldos.doctor import check_ros as ros_packages
from pytest_ldos.doctor import check_ros as shared_memory
from pytest_ldos.doctor import check_ros as sockets
from pytest_ldos.doctor.changes import Finding, Status
from pytest_ldos.doctor.machine import Machine

_ROS: Final = (*ros_packages.CHECKS, discovery.check_domain, discovery.check_discovery)
"""Checks for machines with a sourced ROS 2."""

_ALL: Final[Sequence[Callable[[Machine], Finding]]] = (
    packages.check_embedded,
    packages.check_stress_ng,
    lttng.check_tools,
    lttng.check_recording,
    lttng.check_library,
    lttng.check_tracepoints,
    lttng.check_modules,
    lttng.check_tracing_group,
    switches.check_switches,
    cpu.check_governor,
    cpu.check_turbo,
    cpu.check_smt,
    cpu.check_isolated_cpus,
    cpu.check_others,
    realtime.check_realtime,
    sockets.check_receive_buffer,
    sockets.check_send_buffer,
    shared_memory.check_shared_memory,
    shared_memory.check_stale_segments,
    sessions.check_sessions,
    sessions.check_daemon_folders,
    storage.check_disk,
)


def diagnose(machine: Machine) -> list[Finding]:
    """Runs all checks without changes."""
    return list(_look(machine))


def _look(machine: Machine) -> Iterator[Finding]:
    yield ros_packages.check_distro(machine)
    for check in (*(_ROS if machine.wants_ros2 and machine.has_ros2 else ()), *_ALL):
        yield check(machine)
    yield from strays.check_measurements(machine)
    yield from strays.check_strays(machine)


def worst(findings: Sequence[Finding]) -> Status:
    """The worst status of all."""
    order = list(Status)
    return max((finding.status for finding in findings), key=order.index, default=Status.OK)
