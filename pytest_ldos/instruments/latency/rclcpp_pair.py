"""The ROS workspace's pair, over one of ROS 2's middlewares."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from pytest_ldos.host.ros import find_ros_package, find_ros_packages
from pytest_ldos.instruments.latency.case import Case, Program, prefix_of
from pytest_ldos.instruments.latency.cyclone import environment_of
from pytest_ldos.instruments.latency.cyclone_pair import WARM_UP_S, longest_s
from pytest_ldos.instruments.latency.pair import PairCommands
from pytest_ldos.instruments.latency.programs import ROS_PACKAGE, Site
from pytest_ldos.instruments.latency.spec import LatencySpec, Transport
from pytest_ldos.robot.dds.domain import deaf_to_other_devices

_TRANSPORTS: Final = {
    Transport.ONE_PROCESS: "DEFAULT",
    Transport.LOOPBACK: "UDPv4",
    Transport.SHARED_MEMORY: "SHM",
}
"""Fast DDS's built-in transports; within one process it uses none."""


def commands_of(case: Case, site: Site, *, domain: int, folder: Path) -> PairCommands:
    """Returns the commands that measure a round of a case.

    Raises:
        Unavailable: the workspace is not sourced.
    """
    find_ros_packages([ROS_PACKAGE]).demand()
    prefix = find_ros_package(ROS_PACKAGE)
    assert prefix is not None
    spec, samples = site.spec, folder / "times"
    program = str(prefix / "lib" / ROS_PACKAGE / "latency")
    shared = {
        "reliability": case.reliability.value,
        "size_bytes": case.size,
        "seconds": float(spec.seconds),
        "warm_up_s": WARM_UP_S,
        "patience_s": spec.patience_ms / 1000,
        "match_timeout_s": float(spec.match_timeout_s),
        "rate_hz": float(spec.rate_hz),
        "samples": str(samples),
    }
    is_one = case.transport is Transport.ONE_PROCESS
    cpus = (spec.ping_cpu, spec.pong_cpu) if is_one else (spec.ping_cpu,)
    return PairCommands(
        ping=_command(spec, program, cpus, role="both" if is_one else "ping", **shared),
        pong=None if is_one else _command(spec, program, (spec.pong_cpu,), role="pong", **shared),
        environment=_environment(case, domain, folder),
        samples=samples,
        match_timeout_s=spec.match_timeout_s,
        longest_s=longest_s(spec),
    )


def _command(spec: LatencySpec, program: str, cpus: tuple[int, ...], **parameters: str | float) -> list[str]:
    """Command with parameters; values on ROS's command line are YAML, of which JSON is a subset."""
    settings = [word for name, value in parameters.items() for word in ("-p", f"{name}:={json.dumps(value)}")]
    return [*prefix_of(spec, cpus), program, "--ros-args", *settings]


def _environment(case: Case, domain: int, folder: Path) -> dict[str, str]:
    """Environment with discovery on this machine only: Cyclone DDS's configuration, ROS 2's setting for Fast DDS."""
    chosen = {
        "RMW_IMPLEMENTATION": case.program.rmw,
        "ROS_DOMAIN_ID": str(domain),
        "ROS_LOG_DIR": str(folder / "ros"),
        "ROS_STATIC_PEERS": "",
        "ROS_DISCOVERY_SERVER": "",
        "ROS_SUPER_CLIENT": "",
        "RCUTILS_LOGGING_USE_STDOUT": "0",
    }
    if case.program is Program.RCLCPP_CYCLONE:
        return {
            **chosen,
            **environment_of(case.setup),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "SYSTEM_DEFAULT",
        }
    return {
        **chosen,
        **deaf_to_other_devices(domain),
        "FASTDDS_BUILTIN_TRANSPORTS": _TRANSPORTS[case.transport],
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
    }
