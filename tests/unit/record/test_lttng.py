"""Recording with real LTTng: recorded processes, losses and cleanup."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pytest_ldos.base.errors import RecordingFailed, Unavailable
from pytest_ldos.base.ros2 import TRACEPOINTS_OFF
from pytest_ldos.host import availability, temporary
from pytest_ldos.record import choose, lttng, run_directory
from pytest_ldos.record.lttng import LttngRecorder, lttng_available, lttng_version
from pytest_ldos.trace.ctf.read import read_trace
from tests.builders.needs import needs_lttng
from tests.builders.stressors import is_gone, wait_until

pytestmark = needs_lttng

EMIT = """
import sys
from pytest_ldos.robot.dds.emission import emit
for step in range(int(sys.argv[1])):
    emit.sim_step(step, step * 1000)
"""


def emit(count: int, recorder: LttngRecorder | None = None) -> None:
    prefix = list(recorder.prefix) if recorder else []
    environment = {**os.environ, **(recorder.environment if recorder else {})}
    subprocess.run([*prefix, sys.executable, "-c", EMIT, str(count)], env=environment, check=True)


@pytest.fixture
def recorder(tmp_path):
    recorder = LttngRecorder(tmp_path / "trace", tmp_path)
    yield recorder
    recorder.stop()


def steps_in(directory: Path) -> list:
    return read_trace(directory).events["ldos:sim_step"]["step"].tolist()


def daemons() -> list[str]:
    """Daemons of this test; others may record on this machine, too."""
    running = psutil.Process().children(recursive=True)
    return [process.name() for process in running if process.name().startswith("lttng-")]


def test_lossless_recording_loses_no_events(tmp_path, monkeypatch):
    """The buffers are far too small for the emitted events."""
    monkeypatch.setattr(lttng, "SUBBUFFER_SIZE", "4k")
    monkeypatch.setattr(lttng, "SUBBUFFER_COUNT", 2)
    recorder = LttngRecorder(tmp_path / "trace", tmp_path, lossless=True)
    try:
        recorder.start()
        emit(2_000, recorder)
        assert recorder.pause().discarded_events == 0
    finally:
        recorder.stop()
    assert steps_in(recorder.directory) == list(range(2_000))


def test_events_of_a_recorded_process_are_in_the_trace(recorder):
    recorder.start()
    emit(5, recorder)
    assert recorder.pause().discarded_events == 0
    table = read_trace(recorder.directory).events["ldos:sim_step"]
    assert table["step"].tolist() == [0, 1, 2, 3, 4]
    assert table["sim_time_ns"].tolist() == [0, 1000, 2000, 3000, 4000]
    assert {"vpid", "vtid", "procname"} <= set(table.columns)


def test_process_is_recorded_from_its_start_by_a_busy_daemon(recorder):
    """LTTng itself lets a process run unrecorded if the session daemon does not answer it within 3 s."""
    recorder.start()
    (daemon,) = (each for each in psutil.Process().children(recursive=True) if each.name() == "lttng-sessiond")
    daemon.suspend()
    environment = {**os.environ, **recorder.environment}
    with subprocess.Popen([*recorder.prefix, sys.executable, "-c", EMIT, "5"], env=environment) as process:
        began = psutil.Process(process.pid).create_time()
        wait_until(lambda: process.poll() is not None or time.time() - began > 4)
        daemon.resume()
    recorder.pause()
    assert steps_in(recorder.directory) == [0, 1, 2, 3, 4]


def test_processes_outside_are_not_recorded(recorder):
    """The daemon is private: other processes of the same user do not connect to it."""
    recorder.start()
    emit(1, recorder)
    emit(500)
    recorder.pause()
    assert steps_in(recorder.directory) == [0]


def test_a_paused_recording_can_be_read_and_resumed(recorder):
    recorder.start()
    emit(2, recorder)
    recorder.pause()
    assert len(steps_in(recorder.directory)) == 2
    emit(100, recorder)
    recorder.resume()
    emit(3, recorder)
    recorder.pause()
    assert len(steps_in(recorder.directory)) == 5


def test_rotated_part_is_readable_during_recording(recorder):
    recorder.start()
    emit(2, recorder)
    assert steps_in(recorder.rotate()) == [0, 1]
    emit(3, recorder)
    assert steps_in(recorder.rotate()) == [0, 1, 0, 1, 2]
    emit(1, recorder)
    recorder.pause()
    assert steps_in(recorder.directory) == [0, 1, 0, 1, 2, 0]


def test_process_outside_the_namespace_is_recorded(recorder):
    """With the open environment and no prefix, each event is recorded once; without it, none is."""
    recorder.start()
    environment = {**os.environ, **recorder.open_environment}
    subprocess.run([sys.executable, "-c", EMIT, "5"], env=environment, check=True)
    emit(500)
    recorder.pause()
    assert steps_in(recorder.directory) == [0, 1, 2, 3, 4]


@pytest.fixture
def long_temporary_folder(tmp_path, monkeypatch):
    """A ``TMPDIR`` that is too long for the sockets of a session daemon."""
    folder = tmp_path / ("t" * 150)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_too_long_temporary_folder_is_not_used_for_sockets(long_temporary_folder, recorder):
    assert lttng_available().ok
    recorder.start()
    environment = {**os.environ, **recorder.open_environment}
    subprocess.run([sys.executable, "-c", EMIT, "5"], env=environment, check=True)
    emit(2, recorder)
    recorder.pause()
    assert steps_in(recorder.directory) == [0, 1, 2, 3, 4, 0, 1]
    home = recorder._daemon._home
    recorder.stop()
    assert not home.exists()
    assert not list(long_temporary_folder.iterdir())


def test_missing_place_for_sockets_has_a_reason(long_temporary_folder, monkeypatch):
    monkeypatch.setattr(temporary, "SHORT_FOLDERS", ("/nowhere",))
    refusal = lttng_available()
    assert not refusal.ok
    assert refusal.reason.startswith(f"{long_temporary_folder} is too long a path for Unix sockets")
    assert refusal.remedy == "set TMPDIR to a folder whose path has at most 49 bytes"


def test_lost_events_are_counted_by_the_tracer_and_in_the_trace(tmp_path, monkeypatch):
    """The buffers are far too small: both counts agree and are not zero."""
    monkeypatch.setattr(lttng, "SUBBUFFER_SIZE", "4k")
    monkeypatch.setattr(lttng, "SUBBUFFER_COUNT", 2)
    recorder = LttngRecorder(tmp_path / "trace", tmp_path)
    try:
        recorder.start()
        emit(200_000, recorder)
        report = recorder.pause()
        stats = read_trace(recorder.directory).stats
        assert report.discarded_events > 0
        assert stats.discarded_events > 0
        assert stats.events + report.discarded_events == 200_000
    finally:
        recorder.stop()


def test_nothing_is_left_behind(recorder):
    before = daemons()
    rc_file = Path.home() / ".lttngrc"
    had_rc_file = rc_file.exists()
    recorder.start()
    assert len(daemons()) > len(before)
    emit(1, recorder)
    recorder.stop()
    recorder.stop()
    assert daemons() == before
    assert rc_file.exists() == had_rc_file
    assert not recorder._daemon.is_running


def test_two_recordings_are_independent(tmp_path):
    one, other = (LttngRecorder(tmp_path / name, tmp_path) for name in ("one", "other"))
    try:
        one.start()
        other.start()
        emit(2, one)
        emit(7, other)
        one.pause()
        other.pause()
        assert (len(steps_in(one.directory)), len(steps_in(other.directory))) == (2, 7)
    finally:
        one.stop()
        other.stop()


def test_refused_command_has_a_reason(recorder, monkeypatch):
    monkeypatch.setattr(lttng, "SUBBUFFER_SIZE", "3")
    with pytest.raises(RecordingFailed, match="enable-channel"):
        recorder.start()
    assert not recorder._daemon.is_running


def test_dead_daemon_is_reported(recorder):
    recorder.start()
    recorder._daemon._child.process.kill()
    recorder._daemon._child.process.wait()
    with pytest.raises(RecordingFailed):
        recorder.pause()


START = """
import sys
from pathlib import Path
from pytest_ldos.record.lttng import LttngRecorder
folder = Path(sys.argv[1])
LttngRecorder(folder / "trace", folder).start()
"""

LATE_CONSUMER = """#!/bin/sh
echo $$ > {folder}/begun
while [ ! -e {folder}/go ]; do sleep 0.01; done
exec {consumer} "$@"
"""


def test_unconnected_consumer_ends_with_this_process(tmp_path):
    """It would wait forever for a daemon that was killed."""
    consumers = list(Path("/usr/lib").glob("*/lttng/libexec/lttng-consumerd"))
    if not consumers:
        pytest.skip("LTTng's consumer is not where Debian and Ubuntu have it")
    temporary, late = tmp_path / "tmp", tmp_path / "late"
    temporary.mkdir()
    late.write_text(LATE_CONSUMER.format(folder=tmp_path, consumer=consumers[0]))
    late.chmod(0o755)
    environment = {**os.environ, "TMPDIR": str(temporary), "LTTNG_CONSUMERD64_BIN": str(late)}
    owner = subprocess.Popen([sys.executable, "-c", START, str(tmp_path)], env=environment)
    try:
        wait_until(lambda: (tmp_path / "begun").exists() and (tmp_path / "begun").read_text().strip())
    finally:
        owner.kill()
        owner.wait()
    (tmp_path / "go").touch()
    consumer = int((tmp_path / "begun").read_text())
    wait_until(lambda: is_gone(consumer))
    wait_until(lambda: not list(temporary.iterdir()))


# Makes this environment's packages, including editable installs, importable in another interpreter and its children.
OUR_PACKAGES = f"import site; site.addsitedir({sysconfig.get_paths()['purelib']!r})\n"

NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")

RECORD = """
import os, subprocess, sys, tempfile
from pathlib import Path
from pytest_ldos.record.lttng import LttngRecorder
from pytest_ldos.trace.ctf.read import read_trace
folder = Path(tempfile.mkdtemp())
recorder = LttngRecorder(folder / "trace", folder)
recorder.start()
command = [*recorder.prefix, sys.argv[2], "-c", sys.argv[1], "4"]
subprocess.run(command, env={**os.environ, **recorder.environment}, check=True)
recorder.pause()
print(len(read_trace(recorder.directory).events["ldos:sim_step"]))
recorder.stop()
"""


def python_for_other_users(environment: dict[str, str]) -> str | None:
    """An interpreter, with this environment's packages, that other users can run."""
    for python in ("/usr/bin/python3", os.path.realpath(sys.executable)):
        probe = [*NOBODY, python, "-c", "import pytest_ldos.robot.dds._lttng, pytest_ldos.trace.ctf.read"]
        done = subprocess.run(probe, env=environment, cwd="/", capture_output=True, check=False)
        if done.returncode == 0:
            return python
    return None


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder for all users; pytest's folders are private."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("length", [pytest.param(1, marks=pytest.mark.acceptance), 50, 150])
def test_an_ordinary_user_can_record(home, length):
    """Without root, the private daemon has a separate home with its sockets."""
    (home / "sitecustomize.py").write_text(OUR_PACKAGES)
    folder = home / ("t" * length)
    folder.mkdir()
    folder.chmod(0o777)
    places = {"HOME": str(folder), "TMPDIR": str(folder)}
    environment = {**os.environ, **places, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(home)}
    python = python_for_other_users(environment)
    if python is None:
        pytest.skip("no interpreter with this environment's packages can be run by another user")
    command = [*NOBODY, python, "-c", RECORD, EMIT, python]
    done = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "4", done.stderr


IN_CHROOT = """
root=$1; shift
for entry in /*; do
    if [ -L "$entry" ]; then cp -P "$entry" "$root/"
    elif [ -d "$entry" ]; then mkdir "$root$entry" && mount --rbind "$entry" "$root$entry"
    fi
done
exec chroot "$root" "$@"
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change its root directory")
def test_root_can_record_in_a_chroot(tmp_path):
    """The root directory is no mount point, so that mounts below it cannot be made private from inside."""
    root = tmp_path / "root"
    root.mkdir()
    probe = [sys.executable, "-c", RECORD, EMIT, sys.executable]
    command = [*run_directory.COMMAND, "sh", "-ec", IN_CHROOT, "sh", str(root), *probe]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "4", done.stderr
    assert " /run/lttng " not in Path("/proc/self/mountinfo").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user needs no rights")
def test_root_without_capabilities_gets_a_remedy(monkeypatch):
    monkeypatch.setattr(run_directory, "COMMAND", ("setpriv", "--bounding-set=-sys_admin", *run_directory.COMMAND))
    refusal = lttng_available()
    assert not refusal.ok
    assert "cannot make a mount namespace" in refusal.reason
    assert "CAP_SYS_ADMIN" in refusal.remedy


def test_the_version_is_named():
    assert lttng_version().startswith("LTTng 2.")


def test_without_lttng_the_reason_and_the_remedy_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(availability.shutil, "which", lambda name: None)
    with pytest.raises(Unavailable, match=r"lttng, lttng-sessiond not found\n.*apt-get install lttng-tools"):
        choose.choose_recorder(tmp_path / "trace", tmp_path)


@pytest.mark.parametrize("lossless", [False, True])
def test_disabled_tracepoints_are_enabled_in_recorded_processes(tmp_path, monkeypatch, lossless):
    monkeypatch.setenv(TRACEPOINTS_OFF, "1")
    recorder = LttngRecorder(tmp_path / "trace", log_directory=tmp_path, lossless=lossless)
    for given in (recorder.environment, recorder.open_environment):
        command = [sys.executable, "-c", f"import os; print(repr(os.environ[{TRACEPOINTS_OFF!r}]))"]
        done = subprocess.run(command, env={**os.environ, **given}, capture_output=True, text=True, check=True)
        assert done.stdout == "''\n"
