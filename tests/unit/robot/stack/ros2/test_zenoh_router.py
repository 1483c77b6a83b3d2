"""The router of Zenoh around a program in its place; the real one: `tests/integration/ros2/stack`."""

from __future__ import annotations

import os
import sys
from textwrap import dedent

import psutil
import pytest

from pytest_ldos.base.errors import BringUpFailed, Unavailable
from pytest_ldos.robot.stack.ros2.installed import PROGRAM, ZENOH, isolated
from pytest_ldos.scenario.model import Ros2Spec

LISTENS = """
import os, signal, socket
print(os.environ["ZENOH_CONFIG_OVERRIDE"], flush=True)
listener = socket.create_server(("127.0.0.1", 0))
signal.pause()
"""

REFUSES = """
import sys
print("Error opening Session!")
sys.exit(1)
"""


@pytest.fixture
def sourced(tmp_path):
    """Makes an environment in which a program is the router."""

    def source(program, **more):
        index = tmp_path / "share/ament_index/resource_index/packages"
        index.mkdir(parents=True)
        (index / ZENOH).touch()
        file = tmp_path / "lib" / ZENOH / PROGRAM
        file.parent.mkdir(parents=True)
        file.write_text(f"#!{sys.executable}\n{dedent(program)}")
        file.chmod(0o755)
        return {"AMENT_PREFIX_PATH": str(tmp_path), **more}

    return source


def around(environment, tmp_path):
    return isolated(Ros2Spec(rmw=ZENOH), domain=7, log_directory=tmp_path, environment=environment)


def listens(pid):
    return [each for each in psutil.net_connections("tcp") if each.pid == pid]


def test_nodes_connect_to_the_port_on_which_the_router_listens(sourced, tmp_path, monkeypatch):
    monkeypatch.setattr(psutil.Process, "connections", psutil.Process.net_connections)  # as in psutil 5.9
    monkeypatch.delattr(psutil.Process, "net_connections")
    with around(sourced(LISTENS), tmp_path) as isolation:
        router = isolation.router.children[0]
        (listening,) = listens(router.pid)
        settings = isolation.environment["ZENOH_CONFIG_OVERRIDE"].split(";")
        assert f'connect/endpoints=["tcp/127.0.0.1:{listening.laddr.port}"]' in settings
        assert 'listen/endpoints=["tcp/127.0.0.1:0"]' in settings
        assert "connect/endpoints=[]" in (tmp_path / f"{PROGRAM}.log").read_text(), "no router of another run"
    assert router.exit_code is not None


def test_user_settings_have_precedence(sourced, tmp_path):
    given = "transport/shared_memory/enabled=true;"
    with around(sourced(LISTENS, ZENOH_CONFIG_OVERRIDE=given), tmp_path) as isolation:
        assert isolation.environment["ZENOH_CONFIG_OVERRIDE"].startswith(f"{given}listen/endpoints=")


def test_router_that_does_not_start_is_reported_with_its_output(sourced, tmp_path):
    with (
        pytest.raises(BringUpFailed, match="rmw_zenohd ended with exit code 1") as caught,
        around(sourced(REFUSES), tmp_path),
    ):
        pass
    assert "Error opening Session!" in str(caught.value.details)
    assert "ZENOH_ROUTER_CONFIG_URI" in caught.value.remedy


def test_missing_router_package_is_named(tmp_path):
    (tmp_path / "share/ament_index/resource_index/packages").mkdir(parents=True)
    with (
        pytest.raises(Unavailable, match=ZENOH),
        around({**os.environ, "AMENT_PREFIX_PATH": str(tmp_path), "ROS_DISTRO": "jazzy"}, tmp_path),
    ):
        pass


def test_other_middlewares_have_no_router(tmp_path):
    with isolated(Ros2Spec(rmw="rmw_cyclonedds_cpp"), domain=7, log_directory=tmp_path) as isolation:
        assert isolation.router is None
        assert "ZENOH_CONFIG_OVERRIDE" not in isolation.environment
