from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ldos.robot.stack.ros2.installed import isolated_environment
from pytest_ldos.scenario.model import Ros2Spec


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


def environment(**given):
    return isolated_environment(Ros2Spec(rmw="rmw_fastrtps_cpp"), domain=3, log_directory=Path(), environment=given)


def test_domain_ports_receive_nothing_from_other_machines(monkeypatch):
    monkeypatch.delenv("CYCLONEDDS_URI", raising=False)
    assert environment()["PYTEST_LDOS_LOOPBACK"] == "8150-8399"
    assert "libldos_loopback.so" in environment()["LD_PRELOAD"]


@pytest.mark.parametrize("setting", ["CYCLONEDDS_URI", "FASTDDS_DEFAULT_PROFILES_FILE"])
def test_user_settings_of_the_middleware_have_precedence(setting):
    """They may name another machine, whose messages are then accepted."""
    assert "LD_PRELOAD" not in environment(**{setting: "file:///tuned.xml"})
