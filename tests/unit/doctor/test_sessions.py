"""Leftovers of recordings with the real LTTng, in a private daemon."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess

import pytest

from pytest_ldos.base.errors import MendFailed
from pytest_ldos.doctor.changes import ChangeLog, Status, list_processes
from pytest_ldos.doctor.check_leftovers import check_daemon_folders, check_sessions, find_daemon_folders, list_sessions
from pytest_ldos.record.lttng import LttngRecorder
from tests.builders.machine import add_program, build_machine
from tests.builders.needs import needs_lttng


@pytest.fixture
def recorder(tmp_path):
    recorder = LttngRecorder(tmp_path / "trace", tmp_path)
    recorder.start()
    yield recorder
    recorder.stop()


@pytest.fixture
def machine(tmp_path, recorder):
    """A machine whose ``lttng`` uses the recorder's session daemon."""
    command = shlex.join([*recorder.prefix, shutil.which("lttng")])
    programs = add_program(tmp_path / "bin", "lttng", f'exec {command} "$@"')
    environment = {**os.environ, **recorder.environment, "PATH": f"{programs}:{os.environ['PATH']}"}
    return build_machine(tmp_path / "m", environment=environment, processes=list_processes, uid=os.geteuid())


def pid_of_the_past() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


@needs_lttng
def test_session_of_an_ended_run_is_destroyed(tmp_path, machine):
    stale = f"ldos-{pid_of_the_past()}-1"
    for name in (stale, "mine"):
        assert machine.run(["lttng", "create", name, f"--output={tmp_path / name}"]).returncode == 0
    live = [name for name in list_sessions(machine) if name not in {stale, "mine"}]
    assert len(live) == 1

    finding = check_sessions(machine)
    assert finding.status is Status.WARNING
    assert finding.text == f"left by runs that are gone: {stale}"
    assert not finding.fix.is_reversible
    finding.fix.apply(machine, ChangeLog(tmp_path / "changes.json"))
    assert sorted(list_sessions(machine)) == sorted([*live, "mine"])
    after = check_sessions(machine)
    assert after.status is Status.OK
    assert "mine" in after.text


@needs_lttng
def test_session_that_has_ended_meanwhile(tmp_path, machine):
    machine.run(["lttng", "create", "ldos-1-1", f"--output={tmp_path / 'x'}"])
    name = f"ldos-{pid_of_the_past()}-1"
    machine.run(["lttng", "create", name, f"--output={tmp_path / name}"])
    finding = check_sessions(machine)
    machine.run(["lttng", "destroy", name])
    with pytest.raises(MendFailed, match=name):
        finding.fix.apply(machine, ChangeLog(tmp_path / "changes.json"))


@needs_lttng
def test_folder_of_a_running_recorder_is_kept(tmp_path, machine, recorder):
    """A killed recorder leaves its folder."""
    machine = build_machine(
        tmp_path / "m", environment={"TMPDIR": str(tmp_path)}, processes=list_processes, uid=os.geteuid()
    )
    used = tmp_path / "ldos-lttng-used"
    left = tmp_path / "ldos-lttng-left"
    for folder in (used, left):
        (folder / ".lttng").mkdir(parents=True)
    daemon = subprocess.Popen(["sleep", "600"], env={**os.environ, "LTTNG_HOME": str(used)})
    try:
        assert find_daemon_folders(machine) == [left]
        finding = check_daemon_folders(machine)
        assert finding.status is Status.WARNING
        finding.fix.apply(machine, ChangeLog(tmp_path / "changes.json"))
        assert used.is_dir()
        assert not left.exists()
        assert check_daemon_folders(machine).status is Status.OK
    finally:
        daemon.kill()
        daemon.wait()


def test_folder_outside_a_too_long_temporary_folder_is_found(tmp_path):
    """The paths of the recorder's sockets below ``TMPDIR`` would be too long."""
    machine = build_machine(tmp_path / "m", environment={"TMPDIR": str(tmp_path / ("t" * 150))}, uid=os.geteuid())
    left = tmp_path / "m/tmp/ldos-lttng-left"
    left.mkdir()
    assert find_daemon_folders(machine) == [left]


def test_folder_in_use_is_kept(tmp_path):
    folder = tmp_path / "m/tmp/ldos-lttng-x"
    machine = build_machine(tmp_path / "m", uid=os.geteuid())
    folder.mkdir()
    finding = check_daemon_folders(machine)
    daemon = subprocess.Popen(["sleep", "600"], env={**os.environ, "LTTNG_HOME": str(folder)})
    try:
        now = build_machine(tmp_path / "m", processes=list_processes, uid=os.geteuid())
        finding.fix.apply(now, ChangeLog(tmp_path / "changes.json"))
        assert folder.is_dir()
    finally:
        daemon.kill()
        daemon.wait()


def test_links_and_other_users_folders_are_kept(tmp_path):
    machine = build_machine(tmp_path / "m", uid=os.geteuid())
    (tmp_path / "precious").mkdir()
    (tmp_path / "m/tmp/ldos-lttng-link").symlink_to(tmp_path / "precious")
    (tmp_path / "m/tmp/ldos-lttng-file").touch()
    assert find_daemon_folders(machine) == []
    (tmp_path / "m/tmp/ldos-lttng-dir").mkdir()
    assert find_daemon_folders(build_machine(tmp_path / "m", uid=os.geteuid() + 1)) == []


def test_without_lttng_there_are_no_sessions(tmp_path):
    machine = build_machine(tmp_path / "m", environment={"PATH": str(tmp_path)})
    assert check_sessions(machine).status is Status.OK


@pytest.mark.parametrize("answer", ["", "<command", "Error: no such option"])
def test_invalid_answer_has_no_sessions(tmp_path, answer):
    programs = add_program(tmp_path / "bin", "lttng", f"echo '{answer}'")
    machine = build_machine(tmp_path / "m", environment={"PATH": f"{programs}:/usr/bin:/bin"})
    assert list_sessions(machine) == []
    assert check_sessions(machine).status is Status.OK
