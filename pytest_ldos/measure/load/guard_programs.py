"""The guard's program: ours over Cyclone DDS, or the ROS workspace's over the stack's middleware."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.host.ros import find_ros_package, find_ros_packages
from pytest_ldos.measure.load.flood_programs import LONGEST_S, flood_nodes, ros_command
from pytest_ldos.measure.load.protocol import LoadSite
from pytest_ldos.measure.load.stamps import stamp_reader
from pytest_ldos.robot.dds.loopback import bound_to_loopback
from pytest_ldos.scenario.loads.dds_flood import DdsFloodSpec, FloodDomain
from pytest_ldos.scenario.loads.guard import GuardedTopic, GuardSpec

PACKAGE: Final = "ldos_guard"
"""Package of the ROS workspace."""

NAME: Final = "guard"
"""Name of the node and of its process."""

_REPORT_PERIOD_S: Final = 0.1
_MODULE: Final = "pytest_ldos.measure.load.guard_node"


@dataclass(frozen=True)
class GuardProgram:
    """A command with its environment variables."""

    command: Sequence[str]
    environment: Mapping[str, str]


def publishers_of(spec: GuardSpec, site: LoadSite) -> tuple[str, ...]:
    """Returns the names of the nodes to throttle: those given in the settings, or else those of the flood at the site.

    Raises:
        ConfigurationError: there are none, or they are on another domain.
    """
    if spec.publisher_names:
        return spec.publisher_names
    flood = next((each for each in site.beside if isinstance(each, DdsFloodSpec)), None)
    if flood is None and spec.least_share < 1:
        raise ConfigurationError(
            "the guard has nobody to throttle: no flood is beside it",
            remedy='add dds_flood, or name the nodes: publishers = "/camera,/lidar" (least_share = 1 only watches)',
        )
    if flood is not None and flood.domain == FloodDomain.OTHER:
        raise ConfigurationError(
            "the guard cannot reach a flood on another DDS domain", remedy="leave the flood on the stack's own"
        )
    return () if flood is None else flood_nodes(flood)


def embedded_program(spec: GuardSpec, watched: GuardedTopic, publishers: Sequence[str], site: LoadSite) -> GuardProgram:
    """Returns a Python process over Cyclone DDS.

    Raises:
        ConfigurationError: the topic's messages carry no stamp.
    """
    stamp_reader(watched.type)
    parameters = {"domain": site.domain, **_parameters(spec, watched), "publishers": list(publishers)}
    return GuardProgram([sys.executable, "-m", _MODULE, json.dumps(parameters)], bound_to_loopback())


def ros_program(spec: GuardSpec, watched: GuardedTopic, publishers: Sequence[str], site: LoadSite) -> GuardProgram:
    """Returns `ldos_guard`'s program over the stack's middleware.

    Raises:
        Unavailable: the workspace is not sourced.
    """
    sourced = {**os.environ, **site.environment}
    find_ros_packages([PACKAGE], environment=sourced).demand()
    prefix = find_ros_package(PACKAGE, sourced)
    assert prefix is not None
    named: dict[str, object] = {"publishers": list(publishers)} if publishers else {}
    clock: dict[str, object] = {"use_sim_time": True} if site.has_simulated_clock else {}
    parameters = {**_parameters(spec, watched), **named, **clock}
    program = prefix / "lib" / PACKAGE / NAME
    return GuardProgram(ros_command(program, NAME, **parameters), site.environment)


def _parameters(spec: GuardSpec, watched: GuardedTopic) -> dict[str, object]:
    return {
        "topic": watched.topic,
        "type": watched.type,
        "deadline_ms": float(watched.deadline_ms),
        "silence_ms": float(spec.silence_ms),
        "window_ms": float(spec.window_ms),
        "late_share": float(spec.late_share),
        "least_share": float(spec.least_share),
        "decrease": float(spec.decrease),
        "calm_windows": spec.calm_windows,
        "increase": float(spec.increase),
        "parameter": spec.parameter,
        "report_period_s": _REPORT_PERIOD_S,
        "seconds": LONGEST_S,
    }
