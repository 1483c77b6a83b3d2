"""Interrupted and concurrent builds, with a process per run and the real colcon."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_ldos.host.fingerprint import pids_with
from tests.builders.colcon import COMPILED, HELD, TOO_LARGE, add_package, find_colcon
from tests.builders.namespaces import in_namespaces
from tests.builders.repository import Repository
from tests.builders.ros import add_packages

COLCON = find_colcon()
pytestmark = pytest.mark.skipif(not COLCON, reason="colcon is not installed (make setup installs it)")
ROOT = Path(__file__).parents[4]

RUN = """
import sys
from pathlib import Path
from pytest_ldos.base.errors import LdosError
from pytest_ldos.campaign.versions import find as built
from pytest_ldos.host.availability import Availability
from pytest_ldos.scenario.scenario_table import BaseSpec
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.model import Ros2Spec

built.ros2_available = lambda *_: Availability(True)
root = Path(sys.argv[1])
versions = built.VersionFinder(
    stack=StackSpec(ros2=Ros2Spec(launch_file=str(root / "arm.launch.py"))),
    spec=BaseSpec(workspace=("ros_ws",)),
    root=root,
    folder=root,
    output=root / ".ldos",
    announce=lambda text: print(text, flush=True),
)
try:
    print("made", versions.head().installation.environment["COLCON_PREFIX_PATH"])
except LdosError as error:
    sys.exit(str(error))
"""


class Held:
    """A project whose build waits until it is released."""

    def __init__(self, path: Path) -> None:
        self.repository = Repository.create(path / "project")
        self.path = self.repository.path
        self.begun, self.gate = path / "begun", path / "gate"
        (self.path / ".gitignore").write_text(".ldos\n")
        (self.path / "arm.launch.py").write_text("")
        add_package(self.path / "ros_ws", "arm_planner", more=HELD.format(begun=self.begun, gate=self.gate))
        self.repository.commit()
        self.mark = {"PYTEST_LDOS_TEST": path.name}
        self.environment = (
            os.environ
            | self.mark
            | {
                "PATH": os.environ["PATH"] + os.pathsep + COLCON,
                "AMENT_PREFIX_PATH": str(add_packages(path / "underlay", ["arm_msgs"])),
                "PYTHONPATH": str(ROOT),
            }
        )
        self.started: list[subprocess.Popen[str]] = []

    def start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, self.path], env=self.environment, stdout=subprocess.PIPE, text=True
        )
        self.started.append(process)
        return process

    def await_begin(self) -> None:
        deadline = time.monotonic() + 300
        while not self.begun.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def survivors(self) -> list[int]:
        return [pid for pid in pids_with(self.mark) if pid != os.getpid()]


@pytest.fixture
def held(tmp_path) -> Iterator[Held]:
    made = Held(tmp_path)
    yield made
    made.gate.touch()
    for process in made.started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.acceptance)])
def test_interrupted_build_is_not_complete(held, number):
    """The next run may begin at once: it waits for the end of all processes of the first."""
    first = held.start()
    held.await_begin()
    running = held.survivors()
    first.send_signal(number)
    first.wait(60)
    assert list(held.path.glob(".ldos/bases/workspace-*/log"))
    assert not list(held.path.glob(".ldos/bases/workspace-*/made.json"))
    held.begun.unlink()
    second = held.start()
    held.await_begin()
    assert not set(running) & set(held.survivors()), "the first build has ended"
    held.gate.touch()
    announced = second.communicate(timeout=300)[0]
    assert ", made for head (" in announced
    prefix = Path(announced.splitlines()[-1].removeprefix("made "))
    assert (prefix / "arm_planner/share/arm_planner/value").read_text() == "0"
    assert (prefix.parent / "made.json").is_file()


@pytest.mark.acceptance
def test_two_runs_at_once_build_once(held):
    first = held.start()
    held.await_begin()
    second = held.start()
    assert second.stdout is not None
    assert second.stdout.readline() == "waiting: another run prepares the same version\n"
    held.gate.touch()
    outputs = [each.communicate(timeout=300)[0] for each in (first, second)]
    made = {output.splitlines()[-1] for output in outputs}
    assert len(made) == 1
    assert ["building" in output for output in outputs] == [True, False]


@pytest.mark.acceptance
def test_build_that_fills_the_disk(held):
    """Uses a small file system: colcon's log is truncated, too, and the build's files are removed."""
    store = held.path / ".ldos"
    add_package(held.path / "ros_ws", "arm_planner", more=COMPILED + TOO_LARGE)
    held.repository.commit()
    script = f"mkdir {store}; mount -t tmpfs -o size=8m none {store}"
    after = ["sh", "-c", f'"$@"; code=$?; du -sm {store} | cut -f1; find {store} -name install; exit $code', "sh"]
    command = in_namespaces(script, [*after, sys.executable, "-c", RUN, str(held.path)])
    done = subprocess.run(command, env=held.environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 1
    assert "cannot be built: the disk is full, in package arm_planner" in done.stderr
    assert f"make room on {store}: " in done.stderr
    assert int(done.stdout.splitlines()[-1]) <= 2
