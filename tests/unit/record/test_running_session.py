"""Sessions of a user's own daemon, with real LTTng: found by name, rotated, and why some cannot be."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_ldos.base.errors import ConfigurationError, RecordingFailed, Unavailable
from pytest_ldos.record.attach import RunningSession
from pytest_ldos.trace.ctf.read import read_trace
from tests.builders.needs import needs_lttng
from tests.builders.watched import Watched, watched_daemon

pytestmark = needs_lttng


@pytest.fixture(scope="module")
def daemon(tmp_path_factory) -> Iterator[Watched]:
    with watched_daemon(tmp_path_factory.mktemp("daemon")) as found:
        yield found


@pytest.fixture
def watched(daemon, tmp_path, monkeypatch) -> Iterator[Watched]:
    monkeypatch.setenv("PATH", daemon.path)
    with daemon.cleared(tmp_path):
        yield daemon


@pytest.mark.parametrize("buffers", ["--buffers-uid", "--buffers-pid"])
def test_part_of_a_running_process_is_whole(watched, buffers):
    watched.create(buffers=buffers)
    talker = watched.talker()
    talker.do("begin send take")
    session = RunningSession()
    assert session.name == "wanted"
    for _ in range(2):
        part = session.rotate()
        assert part.parent == session.archives
        assert len(read_trace(part).events["ros2:rmw_publish"]) == 1
        talker.do("send take")


def test_unknown_session_is_refused_with_the_nearest(watched):
    watched.create()
    with pytest.raises(ConfigurationError, match="unknown recording session 'wnated'") as refused:
        RunningSession("wnated")
    assert refused.value.remedy == "did you mean 'wanted'?"


def test_one_of_several_sessions_must_be_named(watched):
    watched.create()
    watched.session.lttng("create", "more", f"--output={watched.session.directory}-more")
    with pytest.raises(ConfigurationError, match="which recording session") as refused:
        RunningSession()
    assert refused.value.remedy == "name one of more, wanted"


@pytest.mark.parametrize("name", [None, "wanted"])
def test_session_is_to_be_begun_if_there_is_none(watched, name):
    with pytest.raises(ConfigurationError, match="no recording session") as refused:
        RunningSession(name)
    assert "ros2 trace start NAME" in refused.value.remedy


def test_session_in_snapshot_mode_is_refused(watched):
    watched.create(output=("--snapshot",))
    with pytest.raises(ConfigurationError, match="session wanted is in snapshot mode, and cannot be rotated"):
        RunningSession()


def test_stopped_session_is_refused(watched):
    watched.create()
    watched.session.stop()
    with pytest.raises(ConfigurationError, match="session wanted is stopped"):
        RunningSession()


@pytest.mark.parametrize("command", ["destroy", "stop"])
def test_session_that_ends_is_named(watched, command):
    watched.create()
    session = RunningSession()
    watched.session.lttng(command, "wanted")
    if command == "stop":
        session.rotate()  # what was recorded until then
    with pytest.raises(RecordingFailed, match="session wanted was stopped or destroyed while watched"):
        session.rotate()


def test_daemon_that_does_not_answer_is_named(tmp_path, monkeypatch):
    with watched_daemon(tmp_path) as found:
        monkeypatch.setenv("PATH", found.path)
        found.create()
        session = RunningSession()
        found.end_daemon()
        with pytest.raises(Unavailable, match="no LTTng session daemon answers"):
            RunningSession()
        with pytest.raises(RecordingFailed, match="session wanted cannot be read any more"):
            session.rotate()
