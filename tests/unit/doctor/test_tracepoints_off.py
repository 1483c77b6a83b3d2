"""The check of the variable that disables ROS 2's tracepoints."""

from __future__ import annotations

import pytest

from pytest_ldos.base.ros2 import TRACEPOINTS_OFF
from pytest_ldos.doctor.changes import Status
from pytest_ldos.doctor.diagnose import check_tracepoints
from tests.builders.machine import build_machine


@pytest.mark.parametrize(("value", "status"), [("1", Status.WARNING), ("0", Status.OK), ("", Status.OK)])
def test_disabled_tracepoints_are_reported(tmp_path, value, status):
    finding = check_tracepoints(build_machine(tmp_path, environment={TRACEPOINTS_OFF: value}))
    assert finding.status is status
    assert finding.remedy == (f"unset {TRACEPOINTS_OFF}" if value == "1" else "")
