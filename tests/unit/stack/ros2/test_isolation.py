from __future__ import annotations

from pathlib import Path

from pytest_ldos.scenario.ros2 import Ros2Spec
from pytest_ldos.stack.ros2.isolation import isolated_environment


def test_two_stacks_share_no_name(monkeypatch):
    monkeypatch.setenv("RMW_IMPLEMENTATION", "rmw_cyclonedds_cpp")
    one, other = (isolated_environment(Ros2Spec(), domain=domain, log_directory=Path("logs")) for domain in (7, 8))
    assert one["ROS_DOMAIN_ID"] == "7"
    assert one["GZ_PARTITION"] != other["GZ_PARTITION"]
    assert one["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "LOCALHOST"
    assert one["RMW_IMPLEMENTATION"] == "rmw_cyclonedds_cpp"
    assert (
        isolated_environment(Ros2Spec(rmw="rmw_fastrtps_cpp"), domain=1, log_directory=Path())["RMW_IMPLEMENTATION"]
        == "rmw_fastrtps_cpp"
    )
