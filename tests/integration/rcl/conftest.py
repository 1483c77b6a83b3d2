"""Real rcl, rmw and rclpy, from wheels: `make test` makes their environment."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.robot.dds.domain import claim_domain, deaf_to_other_devices
from tests.builders.ros import sourced_wheels

RCL = Path(sys.prefix) / "rcl"
NODES = Path(__file__).with_name("nodes.py")


def _why_not() -> str:
    if (RCL / ".missing").exists():
        return (RCL / ".missing").read_text("utf-8").strip()
    return "" if (RCL / ".ready").exists() else "the wheels of ROS 2 are not installed: `make test` does it"


@pytest.fixture(scope="session")
def rcl():
    """The packages' folder."""
    if reason := _why_not():
        pytest.skip(reason)
    (packages,) = RCL.glob("lib/python3.*/site-packages")
    return packages


@pytest.fixture(scope="session")
def sourced(rcl):
    """Variables of processes as if this ROS 2 were sourced."""
    return sourced_wheels(RCL)


class Graph:
    """Nodes of one domain."""

    def __init__(self, group: ProcessGroup, folder: Path, environment: Mapping[str, str]) -> None:
        self.group = group
        self.folder = folder
        self.environment = environment

    def start(self, role, *arguments):
        return self.run_module(role, str(NODES), role, json.dumps(arguments))

    def run_module(self, name, *command, talk=False):
        return self.group.start(name, [sys.executable, *command], talk=talk)

    def log(self, name):
        return (self.folder / f"{name}.log").read_text("utf-8")


@pytest.fixture(scope="session")
def open_graph(sourced):
    """Opens a domain for nodes, recorded if a recorder is given."""

    @contextmanager
    def opened(folder, recorder=None):
        folder.mkdir(parents=True, exist_ok=True)
        with claim_domain() as domain:
            variables = {**sourced, "ROS_DOMAIN_ID": str(domain), "ROS_LOG_DIR": str(folder)}
            variables |= deaf_to_other_devices(domain, variables)
            group = ProcessGroup(
                log_directory=folder,
                prefix=recorder.prefix if recorder else (),
                environment={**variables, **(recorder.environment if recorder else {})},
            )
            try:
                yield Graph(group, folder, variables)
            finally:
                group.stop()

    return opened


@pytest.fixture
def graph(open_graph, tmp_path):
    with open_graph(tmp_path / "nodes") as made:
        yield made
