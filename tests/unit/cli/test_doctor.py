"""``ldos doctor`` on this machine, as a user meets it."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_ldos.host.fingerprint import take_fingerprint
from tests.builders.command_line import run_ldos
from tests.builders.namespaces import in_namespaces
from tests.builders.needs import needs_lttng

LDOS = Path(sys.executable).with_name("ldos")
SILENCE_S = 60.0


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """Nothing of this machine's real state is touched, and its ROS 2 is not seen."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tmp").mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ROS_", "RMW_", "AMENT_"))}
    return {**kept, "XDG_STATE_HOME": str(tmp_path / "state"), "TMPDIR": str(tmp_path / "tmp"), "COLUMNS": "100"}


def doctor(environment, *arguments, **options):
    command = [str(LDOS), "doctor", *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, **options
    )


@pytest.fixture
def stray(tmp_path):
    program = tmp_path / "ros2_control_node"
    shutil.copy(shutil.which("sleep"), program)
    process = subprocess.Popen([str(program), "600"])
    yield process
    process.kill()
    process.wait()


def answer(environment, *arguments, agree):
    """Runs it on a terminal of its own; says yes to the questions that name something of ours."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [str(LDOS), "doctor", *arguments], env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    try:
        printed = _talk(ours, agree)
        return process.wait(SILENCE_S), printed
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _talk(terminal, agree):
    printed = question = ""
    while True:
        assert select.select([terminal], [], [], SILENCE_S)[0], f"it asks for something else: {printed}"
        try:
            piece = os.read(terminal, 4096).decode()
        except OSError:  # a terminal whose other end is closed
            return printed
        printed, question = printed + piece, question + piece
        if question.endswith("[y/N]: "):
            line = question.splitlines()[-1]
            os.write(terminal, b"y\n" if any(name in line for name in agree) else b"n\n")
            question = ""


@pytest.mark.acceptance
def test_worst_finding_decides_the_exit_code(environment):
    done = doctor(environment, "--stack=embedded", "--json")
    document = json.loads(done.stdout)
    assert done.returncode == (11 if document["status"] == "error" else 0)
    strict = doctor(environment, "--stack=embedded", "--strict")
    assert strict.returncode == {"ok": 0, "warning": 12, "error": 11}[document["status"]]


@pytest.mark.acceptance
def test_requested_but_missing_ros2_is_an_error(environment):
    done = doctor(environment, "--stack=ros2")
    assert done.returncode == 11
    assert re.search(r"error +ROS 2 ", done.stdout)


def finding(done, name):
    (found,) = [each for each in json.loads(done.stdout)["findings"] if each["name"] == name]
    return found


def test_read_only_checkout(environment, tmp_path):
    (tmp_path / "project").mkdir()
    command = in_namespaces(
        "mount --bind project project; mount -o remount,bind,ro project; cd project",
        [str(LDOS), "doctor", "--stack=embedded", "--json"],
    )
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    disk = finding(done, "disk")
    assert (done.returncode, disk["status"]) == (11, "error")
    assert disk["text"] == ".ldos cannot be written: Read-only file system"
    assert "name another place" in disk["remedy"]


@pytest.mark.acceptance
@needs_lttng
def test_a_temporary_folder_too_long_for_sockets(environment, tmp_path):
    long = tmp_path / ("t" * 150)
    long.mkdir()
    recording = finding(doctor({**environment, "TMPDIR": str(long)}, "--stack=embedded", "--json"), "recording")
    assert recording["status"] == "ok"
    assert recording["text"] == f"possible; its sockets lie in /tmp: the path of {long} is too long for them"


@pytest.mark.acceptance
def test_wrong_variable_is_reported(environment):
    ros = {"ROS_DISTRO": "jazzy", "AMENT_PREFIX_PATH": "/nowhere", "ROS_DOMAIN_ID": "999"}
    findings = json.loads(doctor({**environment, **ros}, "--json").stdout)["findings"]
    (domain,) = [each for each in findings if each["name"] == "ROS_DOMAIN_ID"]
    assert domain["status"] == "warning"


@pytest.mark.acceptance
def test_without_lttng(environment, tmp_path):
    done = doctor({**environment, "PATH": str(tmp_path)}, "--stack=embedded")
    assert done.returncode == 11
    assert "sudo apt-get install lttng-tools" in done.stdout


@pytest.mark.acceptance
def test_stack_of_the_settings_is_checked(environment, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.ldos.stack]\nrmw = "rmw_other_cpp"\n')
    environment |= {"LDOS_STACK": "ros2", "AMENT_PREFIX_PATH": str(tmp_path), "ROS_DISTRO": "jazzy"}
    asked = json.loads(doctor(environment, "--json").stdout)
    assert asked["stack"] == "ros2"
    assert any("rmw_other_cpp is not installed" in each["text"] for each in asked["findings"])
    assert json.loads(doctor(environment, "--json", "--stack=embedded").stdout)["stack"] == "embedded"


@pytest.mark.acceptance
def test_confirmed_fixes_are_applied_and_refused_ones_are_not(environment, tmp_path, stray):
    left = tmp_path / "tmp/ldos-lttng-left"
    left.mkdir()
    with subprocess.Popen([stray.args[0], "600"]) as refused:
        try:
            agree = (f"process {stray.pid} ", str(tmp_path))
            code, printed = answer(environment, "--stack=embedded", "--fix", agree=agree)
            assert refused.poll() is None
        finally:
            refused.kill()
    assert code in {0, 11}
    assert f"end process {refused.pid}" in printed
    assert f"done: end process {refused.pid}" not in printed
    assert f"done: end process {stray.pid} (ros2_control_node)" in printed
    assert "(cannot be undone)? [y/N]" in printed
    assert stray.wait(timeout=60) == -signal.SIGINT
    assert not left.exists()
    rows = re.findall("recorders' folders(?! →)", printed)
    assert len(rows) == 2, "before and after"


@pytest.mark.acceptance  # the test above refuses one of several
def test_refused_fixes_are_not_applied(environment, tmp_path, stray):
    _, printed = answer(environment, "--stack=embedded", "--fix", agree=())
    assert f"end process {stray.pid}" in printed
    assert "done:" not in printed
    assert stray.poll() is None
    assert not (tmp_path / "state").exists()


@pytest.mark.acceptance
def test_fix_without_a_terminal_is_refused(environment, stray):
    done = doctor(environment, "--stack=embedded", "--fix")
    assert done.returncode == 2
    assert "add --yes" in done.stderr
    assert stray.poll() is None


def test_undo_without_changes(environment, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", environment["XDG_STATE_HOME"])
    done = run_ldos("doctor", "--undo")
    assert (done.returncode, done.stdout) == (0, "nothing to restore\n")


@pytest.mark.parametrize(
    "arguments", [("--json", "--fix"), ("--fix", "--undo"), ("--yes",), ("--stack=gazebo",), ("--host-class", "--json")]
)
def test_incompatible_options_are_refused(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert run_ldos("doctor", *arguments).returncode == 2


@pytest.mark.acceptance
def test_a_damaged_record_of_changes(environment, tmp_path):
    (tmp_path / "state/ldos").mkdir(parents=True)
    (tmp_path / "state/ldos/doctor-changes.json").write_text("{")
    done = doctor(environment, "--undo")
    assert done.returncode == 2
    assert "doctor-changes.json cannot be read" in done.stderr


def test_host_class_only(environment, monkeypatch):
    """For a matrix over classes: the folder of the embedded stack's baselines."""
    monkeypatch.setenv("XDG_STATE_HOME", environment["XDG_STATE_HOME"])
    done = run_ldos("doctor", "--stack=embedded", "--host-class")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{take_fingerprint(rmw='cyclonedds', versions={}).host_class}\n"
