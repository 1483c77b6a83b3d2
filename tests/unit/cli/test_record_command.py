"""`ldos record`: what it refuses, what it says, and its ends."""

from __future__ import annotations

import pytest

from pytest_ldos.base.errors import ConfigurationError, RecordingFailed
from pytest_ldos.record.protocol import RecordingReport
from tests.builders.command_line import invoke_ldos


class Recorder:
    """Stands in for the recorder of running nodes, whose own tests need LTTng and ROS 2."""

    has_names = False
    report = RecordingReport(0, 0)
    stopped = 0

    def __init__(self, *_, **__):
        pass

    def start(self):
        return

    def pause(self):
        return self.report

    def stop(self):
        Recorder.stopped += 1


@pytest.fixture
def nodes(monkeypatch):
    monkeypatch.setattr("pytest_ldos.cli.record.registered_processes", lambda: {7: "talker"})
    monkeypatch.setattr("pytest_ldos.cli.record.AttachedRecorder", Recorder)
    monkeypatch.setattr(Recorder, "stopped", 0)


@pytest.mark.parametrize(
    "words", [(), ("trace",), ("--attach",), ("trace", "--keep-names"), ("trace", "--attach", "--keep-names")]
)
def test_incomplete_and_contradictory_words_are_refused(words):
    with pytest.raises(ConfigurationError, match="nothing says what to record, and where"):
        invoke_ldos("record", *words)


def test_existing_folder_is_refused(tmp_path, nodes):
    with pytest.raises(ConfigurationError, match="exists"):
        invoke_ldos("record", "--attach", str(tmp_path))


def test_processes_and_missing_names_are_said(tmp_path, nodes):
    done = invoke_ldos("record", "--attach", str(tmp_path / "trace"), "--seconds", "0.1")
    assert done.exit_code == 0
    assert "recording talker (7)" in done.output
    assert "have no names" in done.output
    assert Recorder.stopped == 1


def test_losses_end_with_another_exit_code(tmp_path, nodes, monkeypatch):
    monkeypatch.setattr(Recorder, "report", RecordingReport(5, 1))
    done = invoke_ldos("record", "--attach", str(tmp_path / "trace"), "--seconds", "0.1")
    assert done.exit_code == 11
    assert "5 events and 1 packets were lost" in done.output


def test_session_that_was_destroyed_is_ended_too(tmp_path, nodes, monkeypatch):
    def gone(_):
        raise RecordingFailed("`lttng stop` failed: no session")

    monkeypatch.setattr(Recorder, "pause", gone)
    with pytest.raises(RecordingFailed, match="no session"):
        invoke_ldos("record", "--attach", str(tmp_path / "trace"), "--seconds", "0.1")
    assert Recorder.stopped == 1
