"""Messages of a run without ROS 2."""

from __future__ import annotations

import pytest

from pytest_ldos.base import exit_codes
from tests.integration.project import make_project


@pytest.mark.starts_nothing
def test_no_ros_at_all(tmp_path):
    project = make_project(tmp_path)
    project.environment["LDOS_STACK"] = "ros2"
    for name in ("AMENT_PREFIX_PATH", "ROS_DISTRO", "PYTHONPATH"):
        project.environment.pop(name, None)
    code, output = project.run("-m", "baseline", "--ldos-trials=1")
    assert code == exit_codes.INVALID, output
    assert "ldos: cannot measure: " in output
    assert "baseline: infra" in output
    assert "Traceback" not in output
