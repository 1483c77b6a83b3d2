"""The unit of the how-to page keeps the names of nodes from boot on: real rcl, started by a service."""

from __future__ import annotations

import re

import pytest

from tests.builders.pages import ROOT, parse_page
from tests.builders.ros import sourced_wheels
from tests.lab.machine import lab_machine
from tests.lab.root import PLACE, ROS2, copy_checkout, distribution_root, installed_layer, ros2_layer

[*_, PAGE] = parse_page("", (ROOT / "docs/how-to/record-running-nodes.md").read_text("utf-8"))
[UNIT] = [each for each in PAGE.blocks if each.file == "ldos-names.service"]
COMMANDS = [command.text for each in PAGE.blocks if "needs-root" in each.marks for command in each.commands]
ELSEWHERE = {"apt-get", "python3", "reboot"}
"""The page's commands that do not run: the root has the packages and the environment, and the test reboots."""

SERVICES = "etc/systemd/system"
DAEMON = f"{SERVICES}/lttng-sessiond.service.d/late.conf"
LATE = "[Service]\nExecStart=\nExecStart=/bin/sh -c 'sleep 4; exec /usr/bin/lttng-sessiond'\n"
"""A session daemon that is ready late, as where it loads kernel modules."""

ROBOT = """[Service]
User=robot
Environment={}
ExecStart=/{}/bin/python /{}/tests/integration/rcl/nodes.py arm [0.0]

[Install]
WantedBy=multi-user.target
"""


@pytest.fixture(scope="module")
def machine(computer, tmp_path_factory):
    """A machine with a robot that starts at boot, after what the page says."""
    lower = [installed_layer(), ros2_layer(), distribution_root()]
    with lab_machine(tmp_path_factory.mktemp("names"), lower) as machine:
        copy_checkout(machine.root)
        (machine.root / "opt/ldos").symlink_to("ldos-lab/venv")
        (machine.root / DAEMON).parent.mkdir()
        (machine.root / DAEMON).write_text(LATE)
        sourced = sourced_wheels(machine.root / ROS2).items()
        variables = " ".join(f"{name}={value}" for name, value in sourced).replace(str(machine.root), "")
        (machine.root / SERVICES / "robot.service").write_text(ROBOT.format(variables, ROS2, PLACE))
        (machine.root / "root" / UNIT.file).write_text(UNIT.text)
        machine.boot()
        machine.shell("useradd --create-home robot")
        for command in COMMANDS:
            if command.split()[1] not in ELSEWHERE:
                machine.shell(f"cd ~root; {command}")
        machine.shell("systemctl enable robot.service")
        machine.reboot()
        yield machine


def recorded(machine, user):
    """Output of a recording by a user, and of its analysis."""
    ldos = "/opt/ldos/bin/ldos"
    script = f"cd $(mktemp -d); {ldos} record --attach trace --seconds 2 2>&1; {ldos} analyze trace"
    return machine.shell('runuser --user "$1" -- sh -euc "$2"', user, script)


def has_names(text):
    assert "no event of the trace is missing" in text
    assert re.search(r"^  (/joint_states|unknown) +\d+ ", text, re.MULTILINE), text
    return bool(re.search(r"^  /arm ", text, re.MULTILINE)) and "/joint_states" in text


@pytest.mark.parametrize("user", ["robot", "root"])
def test_node_that_runs_since_boot_is_recorded_with_its_name(machine, user):
    machine.await_that(lambda: int(machine.shell("ps -o etimes= -p $(systemctl show -P MainPID robot)")) > 10, "10 s")
    assert has_names(recorded(machine, user))


def test_unit_leaves_the_machine_as_it_is_to_be(machine):
    """All units run, and there is one session daemon: that of the machine."""
    assert machine.shell("systemctl is-system-running").strip() == "running"
    [daemon] = machine.shell("systemctl show -P MainPID lttng-sessiond").split()
    assert machine.shell("cat /run/lttng/lttng-sessiond.pid").strip() == daemon
    assert machine.shell("find /home/robot /root -name '*ldos-names-*'") == ""


def test_without_user_in_the_unit_root_alone_has_names(machine):
    machine.shell(f"sed -i /^User=/d /{SERVICES}/{UNIT.file}")
    machine.reboot()
    assert has_names(recorded(machine, "root"))
    text = recorded(machine, "robot")
    assert "have no names" in text
    assert not has_names(text)
