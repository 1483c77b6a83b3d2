"""Recording with real LTTng: what lands in the trace, what does not, and what is left."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pytest_ldos.base.errors import RecordingFailed, Unavailable
from pytest_ldos.base.tracepoints import TRACEPOINTS_OFF
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
    """Ours; others may record on this machine too."""
    running = psutil.Process().children(recursive=True)
    return [process.name() for process in running if process.name().startswith("lttng-")]


def test_a_lossless_recording_waits_instead_of_losing(tmp_path, monkeypatch):
    """Buffers far too small for what is emitted."""
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


def test_what_a_recorded_process_emits_is_in_the_trace(recorder):
    recorder.start()
    emit(5, recorder)
    assert recorder.pause().discarded_events == 0
    table = read_trace(recorder.directory).events["ldos:sim_step"]
    assert table["step"].tolist() == [0, 1, 2, 3, 4]
    assert table["sim_time_ns"].tolist() == [0, 1000, 2000, 3000, 4000]
    assert {"vpid", "vtid", "procname"} <= set(table.columns)


def test_processes_outside_are_not_recorded(recorder):
    """The daemon is ours: another process of the same user does not reach it."""
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


def test_what_was_recorded_so_far_can_be_read_while_recording_goes_on(recorder):
    recorder.start()
    emit(2, recorder)
    assert steps_in(recorder.rotate()) == [0, 1]
    emit(3, recorder)
    assert steps_in(recorder.rotate()) == [0, 1, 0, 1, 2]
    emit(1, recorder)
    recorder.pause()
    assert steps_in(recorder.directory) == [0, 1, 0, 1, 2, 0]


def test_a_process_outside_the_namespace_can_be_recorded_too(recorder):
    """With the open environment and no prefix, each event once; without it, not at all."""
    recorder.start()
    environment = {**os.environ, **recorder.open_environment}
    subprocess.run([sys.executable, "-c", EMIT, "5"], env=environment, check=True)
    emit(500)
    recorder.pause()
    assert steps_in(recorder.directory) == [0, 1, 2, 3, 4]


@pytest.fixture
def long_temporary_folder(tmp_path, monkeypatch):
    """A ``TMPDIR`` that is a good path of files, and too long for the sockets of a session daemon."""
    folder = tmp_path / ("t" * 150)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_temporary_folder_too_long_for_sockets_is_not_used_for_them(long_temporary_folder, recorder):
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


def test_a_machine_without_a_place_for_sockets_is_refused_with_the_reason(long_temporary_folder, monkeypatch):
    monkeypatch.setattr(temporary, "SHORT_FOLDERS", ("/nowhere",))
    refusal = lttng_available()
    assert not refusal.ok
    assert refusal.reason.startswith(f"{long_temporary_folder} is too long a path for Unix sockets")
    assert refusal.remedy == "set TMPDIR to a folder whose path has at most 49 bytes"


def test_lost_events_are_counted_by_the_tracer_and_in_the_trace(tmp_path, monkeypatch):
    """Buffers far too small for what is emitted: both counts agree, and none is zero."""
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


def test_two_recordings_do_not_see_each_other(tmp_path):
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


def test_a_refused_command_says_why(recorder, monkeypatch):
    monkeypatch.setattr(lttng, "SUBBUFFER_SIZE", "3")
    with pytest.raises(RecordingFailed, match="enable-channel"):
        recorder.start()
    assert not recorder._daemon.is_running


def test_a_daemon_that_dies_is_reported(recorder):
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


def test_a_consumer_that_never_meets_its_daemon_ends_with_us(tmp_path):
    """It would wait for a daemon that was killed in the meantime."""
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


# Makes this environment's packages, an editable install among them, known to another interpreter and its children.
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


def python_for_nobody(environment: dict[str, str]) -> str | None:
    """An interpreter that somebody else can run too, with our packages."""
    for python in ("/usr/bin/python3", os.path.realpath(sys.executable)):
        probe = [*NOBODY, python, "-c", "import pytest_ldos.robot.dds._lttng, pytest_ldos.trace.ctf.read"]
        done = subprocess.run(probe, env=environment, cwd="/", capture_output=True, check=False)
        if done.returncode == 0:
            return python
    return None


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that everybody can use; what pytest makes is for its user alone."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("length", [1, 50, 150])
def test_an_ordinary_user_can_record(home, length):
    """Without root the private daemon lies in a home of its own, which holds its sockets."""
    (home / "sitecustomize.py").write_text(OUR_PACKAGES)
    folder = home / ("t" * length)
    folder.mkdir()
    folder.chmod(0o777)
    places = {"HOME": str(folder), "TMPDIR": str(folder)}
    environment = {**os.environ, **places, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(home)}
    python = python_for_nobody(environment)
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
    """Its root directory is no mount point: what is mounted below it cannot be made private from inside."""
    root = tmp_path / "root"
    root.mkdir()
    probe = [sys.executable, "-c", RECORD, EMIT, sys.executable]
    command = [*run_directory.COMMAND, "sh", "-ec", IN_CHROOT, "sh", str(root), *probe]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "4", done.stderr
    assert " /run/lttng " not in Path("/proc/self/mountinfo").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user needs no rights")
def test_root_without_rights_is_told_what_it_needs(monkeypatch):
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
def test_tracepoints_that_a_user_switched_off_are_on_where_it_is_recorded(tmp_path, monkeypatch, lossless):
    monkeypatch.setenv(TRACEPOINTS_OFF, "1")
    recorder = LttngRecorder(tmp_path / "trace", log_directory=tmp_path, lossless=lossless)
    for given in (recorder.environment, recorder.open_environment):
        command = [sys.executable, "-c", f"import os; print(repr(os.environ[{TRACEPOINTS_OFF!r}]))"]
        done = subprocess.run(command, env={**os.environ, **given}, capture_output=True, text=True, check=True)
        assert done.stdout == "''\n"
