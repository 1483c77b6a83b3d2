"""The command that starts the workspace's goal client."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.base.writable import writing
from pytest_ldos.host.ros import find_ros_package, remedy_for_packages
from pytest_ldos.scenario.ros2 import Ros2Spec

PACKAGE: Final = "ldos_goal_client"
_PROGRAM: Final = "lib/ldos_goal_client/goal_client"
_GRACE_S: Final = 10.0
"""Grace beyond the stack's own readiness timeout, whose message is more precise, so that it expires first."""


def goal_client_command(spec: Ros2Spec, *, directory: Path, environment: Mapping[str, str] | None = None) -> list[str]:
    """Returns the command; writes its parameters to a file in `directory`.

    Raises:
        Unavailable: the workspace is not sourced.
    """
    prefix = find_ros_package(PACKAGE, environment)
    if prefix is None:
        remedy = remedy_for_packages([PACKAGE], environment=environment)
        raise Unavailable(f"ROS package {PACKAGE} not found", remedy=remedy)
    parameters = {
        "interactive": True,
        "action_name": spec.action,
        "group": spec.group,
        "base_frame": spec.base_frame,
        "joint_states_topic": spec.joint_states,
        "server_timeout": spec.ready_timeout_s + _GRACE_S,
    }
    file = directory / "goal_client.yaml"
    # JSON is YAML; unlike on a command line, a group called "on" stays a text.
    with writing(file):
        file.write_text(json.dumps({"/**": {"ros__parameters": parameters}}, indent=1), "utf-8")
    return [str(prefix / _PROGRAM), "--ros-args", "--params-file", str(file)]
