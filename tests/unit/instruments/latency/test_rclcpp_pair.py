"""Parameters and reports of the ROS workspace's pair match this package."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.instruments.latency import peer
from pytest_ldos.instruments.latency.pair import rclcpp_commands
from pytest_ldos.instruments.latency.programs import Programs, Site
from pytest_ldos.instruments.latency.spec import LatencySpec, Program, cases_of, setups_of
from tests.builders.ros import add_packages, sourced

SOURCES = Path(__file__).parents[4] / "ros_ws/src/ldos_latency/src"
CPP = "\n".join(file.read_text() for file in sorted(SOURCES.glob("*.cpp")))


@pytest.fixture
def workspace(monkeypatch, tmp_path):
    prefix = add_packages(tmp_path / "install", ["ldos_latency"])
    for name, value in sourced(prefix).items():
        monkeypatch.setenv(name, value)
    return prefix


def commands(tmp_path, program=Program.RCLCPP_CYCLONE, **settings):
    spec = LatencySpec(**{"transports": "loopback", "sizes": "64KiB", **settings})
    (case,) = cases_of(setups_of(spec), [program])
    return rclcpp_commands(
        case, Site(spec=spec, programs=Programs({}, (), ()), folder=tmp_path), domain=7, folder=tmp_path
    )


def parameters(command):
    return {name: json.loads(value) for name, value in (word.split(":=", 1) for word in command[3::2])}


def test_every_parameter_is_declared_with_its_type(workspace, tmp_path):
    given = parameters(commands(tmp_path, seconds=2).ping)
    text = dict.fromkeys(re.findall(r'declare_parameter<std::string>\(\s*"(\w+)"', CPP), str)
    whole = dict.fromkeys(re.findall(r'declare_parameter<std::int64_t>\(\s*"(\w+)"', CPP), int)
    real = dict.fromkeys(re.findall(r'(?:declare_parameter<double>\(|seconds\(\*this, )"(\w+)"', CPP), float)
    assert {name: type(value) for name, value in given.items()} == {**text, **whole, **real}
    assert given["seconds"] == 2.0
    assert given["role"] == "ping"


def test_reports_have_the_same_keys():
    ours = set(
        re.findall(r"(\w+)=", Path(peer.__file__).read_text().partition("def _ask(")[2].partition("def main")[0])
    )
    theirs = set(re.findall(r'\{"(\w+)", ', CPP))
    assert {"matched", "sent", "lost", "late", "elapsed_ns", "is_alone"} == theirs
    assert theirs <= ours
    assert '{\\"ready\\": true}' in CPP


def test_each_middleware_is_kept_on_this_machine(workspace, tmp_path):
    cyclone = commands(tmp_path, fragment_sizes="8000").environment
    assert cyclone["RMW_IMPLEMENTATION"] == "rmw_cyclonedds_cpp"
    assert 'name="lo"' in cyclone["CYCLONEDDS_URI"]
    assert "<FragmentSize>8000 B</FragmentSize>" in cyclone["CYCLONEDDS_URI"]
    fast = commands(tmp_path, Program.RCLCPP_FASTDDS).environment
    assert fast["RMW_IMPLEMENTATION"] == "rmw_fastrtps_cpp"
    assert fast["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "LOCALHOST"
    assert fast["FASTDDS_BUILTIN_TRANSPORTS"] == "UDPv4"
    shared = commands(tmp_path, Program.RCLCPP_FASTDDS, transports="shared_memory").environment
    assert shared["FASTDDS_BUILTIN_TRANSPORTS"] == "SHM"
    assert cyclone["ROS_DOMAIN_ID"] == fast["ROS_DOMAIN_ID"] == "7"


def test_one_process_has_both_roles_and_cpus(workspace, tmp_path):
    found = commands(tmp_path, transports="one_process", ping_cpu=1, pong_cpu=0)
    assert found.pong is None
    assert found.ping[:3] == ["taskset", "--cpu-list", "0,1"]
    assert 'role:="both"' in found.ping


def test_missing_workspace_has_a_remedy(monkeypatch, tmp_path):
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(add_packages(tmp_path / "empty", ["rclcpp"])))
    with pytest.raises(Unavailable, match="ldos_latency") as caught:
        commands(tmp_path)
    assert "ros_ws" in caught.value.remedy


def test_case_has_its_middleware():
    assert [each.rmw for each in Program] == ["", "", "", "rmw_cyclonedds_cpp", "rmw_fastrtps_cpp"]
