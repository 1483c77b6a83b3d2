"""The programs of a flood: ours over Cyclone DDS, or the ROS workspace's over the stack's middleware."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.host.ros import find_ros_package, find_ros_packages
from pytest_ldos.robot.dds.loopback import bound_to_loopback
from pytest_ldos.scenario.loads.dds_flood import DdsFloodSpec, Reliability

LONGEST_S: Final = 1800.0
"""A flood ends by itself after this time, whatever happens to its owner."""

PACKAGE: Final = "ldos_load"
"""Package of the ROS workspace."""

_REPORT_PERIOD_S: Final = 0.1
_ROOM: Final = "pytest_ldos.measure.load"
_TOPIC: Final = "/flood_topic_"
_PUBLISHER: Final = "flood_publisher_"


@dataclass(frozen=True)
class FloodPrograms:
    """Commands by name of the process.

    Attributes:
        counter: command of the receiver, for a flood with matched readers.
        environment: variables for all of them.
    """

    counter: Sequence[str]
    publishers: Mapping[str, Sequence[str]]
    environment: Mapping[str, str]


def shares(spec: DdsFloodSpec) -> Iterator[range]:
    """Yields each process's topic numbers (from 1); the numbers of topics differ by at most one."""
    begin = 1
    for process in range(spec.processes):
        count = spec.publishers // spec.processes + (process < spec.publishers % spec.processes)
        yield range(begin, begin + count)
        begin += count


def flood_nodes(spec: DdsFloodSpec) -> tuple[str, ...]:
    """Returns the full names of the nodes that publish."""
    return tuple(f"/{_PUBLISHER}{process}" for process in range(1, spec.processes + 1))


def embedded_programs(spec: DdsFloodSpec, *, domain: int) -> FloodPrograms:
    """Returns Python processes over Cyclone DDS."""
    reliable = spec.reliability == Reliability.RELIABLE
    every_topic = _topics(range(1, spec.publishers + 1))
    return FloodPrograms(
        environment=bound_to_loopback(),
        counter=_command("flood_counter", domain=domain, topics=every_topic, reliable=reliable),
        publishers={
            f"{_PUBLISHER}{index}": _command(
                "flood_publisher",
                domain=domain,
                index=index,
                topics=_topics(share),
                rate_hz=spec.rate_hz,
                burst=spec.burst,
                size_bytes=spec.size_bytes,
                reliable=reliable,
                depth=spec.depth,
                awaits_readers=spec.readers,
                seconds=LONGEST_S,
            )
            for index, share in enumerate(shares(spec), start=1)
        },
    )


def _topics(numbers: range) -> list[str]:
    return [f"{_TOPIC}{number}" for number in numbers]


def _command(module: str, **parameters: object) -> list[str]:
    return [sys.executable, "-m", f"{_ROOM}.{module}", json.dumps(parameters)]


def ros_programs(spec: DdsFloodSpec, *, domain: int, environment: Mapping[str, str]) -> FloodPrograms:
    """Returns `ldos_load`'s programs over the stack's middleware.

    Args:
        environment: variables of the stack's processes, in addition to ours.

    Raises:
        Unavailable: the workspace is not sourced.
    """
    sourced = {**os.environ, **environment}
    find_ros_packages([PACKAGE], environment=sourced).demand()
    prefix = find_ros_package(PACKAGE, sourced)
    assert prefix is not None
    programs = prefix / "lib" / PACKAGE
    shared = {"reliability": spec.reliability, "report_period_s": _REPORT_PERIOD_S}
    sending = {
        "rate_hz": float(spec.rate_hz),
        "burst": spec.burst,
        "size_bytes": spec.size_bytes,
        "depth": spec.depth,
        "awaits_readers": spec.readers,
        "seconds": LONGEST_S,
    }
    return FloodPrograms(
        environment={**environment, "ROS_DOMAIN_ID": str(domain)},
        counter=ros_command(programs / "flood_counter", "flood_counter", publishers=spec.publishers, **shared),
        publishers={
            (name := f"{_PUBLISHER}{index}"): ros_command(
                programs / "flood_publisher",
                name,
                publishers=len(share),
                first_number=share.start,
                **sending,
                **shared,
            )
            for index, share in enumerate(shares(spec), start=1)
        },
    )


def ros_command(program: Path, node: str, **parameters: object) -> list[str]:
    """Returns a command with parameters; their values are YAML, of which JSON is a subset."""
    settings = [word for name, value in parameters.items() for word in ("-p", f"{name}:={json.dumps(value)}")]
    return [str(program), "--ros-args", "-r", f"__node:={node}", *settings]
