"""``ldos watch`` on a session of real LTTng, from its first line to its exit code."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.base.ros2 import BUILT_IN_PATHS
from pytest_ldos.base.text import Rendered
from pytest_ldos.cli import say, watch
from pytest_ldos.cli.watch import _parse_deadlines
from tests.builders.command_line import run_ldos
from tests.builders.namespaces import in_namespaces
from tests.builders.needs import needs_lttng
from tests.builders.stressors import wait_until
from tests.builders.watched import Talker, Watched, watched_daemon


@pytest.fixture(scope="module")
def daemon(tmp_path_factory) -> Iterator[Watched]:
    with watched_daemon(tmp_path_factory.mktemp("daemon")) as found:
        yield found


@pytest.fixture
def watched(daemon, tmp_path, monkeypatch) -> Iterator[Watched]:
    monkeypatch.setenv("PATH", daemon.path)
    monkeypatch.chdir(tmp_path)
    with daemon.cleared(tmp_path):
        daemon.create()
        yield daemon


@contextmanager
def doing(talker: Talker, words: str) -> Iterator[None]:
    """Repeats words until the ``with`` block ends."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.is_set():
            talker.do(words)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(60)


@needs_lttng
def test_missed_deadline_is_a_line_a_trace_and_an_exit_code(watched, tmp_path):
    talker = watched.talker()
    talker.do("begin")
    with doing(talker, "send wait,30 take"):
        done = run_ldos("watch", "--interval=0.1s", "--for=1s", "--deadline=/beat=20", "--keep=60s")
    assert done.returncode == exit_codes.ALARM, done.stderr
    first, *lines, last = done.stdout.splitlines()
    assert first.startswith(
        f"watching session wanted, whose files stay in {tmp_path}/recorded/archives; those from now"
    )
    assert any("  missed deadline: topic /beat: " in line for line in lines)
    assert last.startswith("watched ")
    assert last.endswith((" alarms", " 1 alarm"))
    assert "\x1b" not in done.stdout
    assert done.stderr == "", "alarms of one second are saved in different places"
    places = [line.rpartition(" ")[2] for line in lines if line.startswith("saved what led to it: ")]
    assert len({*places}) == len(places)
    assert all((tmp_path / each).is_dir() for each in places)
    shown = run_ldos("analyze", places[0])
    assert "/talker" in shown.stdout
    assert "/beat" in shown.stdout


@needs_lttng
def test_last_trace_that_is_saved_is_named(watched, monkeypatch, capsys):
    monkeypatch.setattr(watch, "_MOST_SAVED", 1)
    talker = watched.talker()
    talker.do("begin")
    with doing(talker, "send wait,30 take"), pytest.raises(typer.Exit):
        watch.watch(interval="0.1s", duration="2s", deadline=["/beat=20"], keep="60s")
    (saved,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("saved"))
    assert saved.startswith("saved what led to it, the last time: ldos analyze ")


@needs_lttng
def test_without_an_alarm_each_interval_is_a_line(watched):
    talker = watched.talker()
    talker.do("begin")
    with doing(talker, "send take wait,1 send take wait,40"):  # without a period: no topic can fall silent
        deadlines = ("--deadline=/beat=60000", "--deadline=/absent=3", "--deadline=planning=3")
        done = run_ldos("watch", "wanted", "--interval=0.1s", "--for=2s", *deadlines)
    assert done.returncode == 0
    _, *lines, of_absent, of_planning, last = done.stdout.splitlines()
    assert of_absent == "deadline of /absent: no message was seen to check it with"
    assert of_planning == "deadline of planning: no message was seen to check it with"
    assert lines
    assert all(" events, 0 alarms" in line for line in (*lines, last))
    assert "/beat" in lines[-1]


@needs_lttng
@pytest.mark.parametrize("ending", ["stop", "destroy"])
def test_session_that_ends_is_named(watched, tmp_path, ending):
    talker = watched.talker()
    talker.do("begin")

    def end() -> None:
        wait_until(lambda: len(list(tmp_path.glob("recorded/archives/*"))) > 1)
        watched.session.lttng(ending, "wanted")

    thread = threading.Thread(target=end)
    thread.start()
    done = run_ldos("watch", "--interval=0.1s")
    thread.join(60)
    assert done.returncode == exit_codes.INVALID
    assert "session wanted was stopped or destroyed while watched" in done.stderr
    assert done.stdout.splitlines()[-1].startswith("watched ")


@needs_lttng
def test_full_disk_and_sigterm_lose_no_alarm(watched):
    """The first alarm cannot be saved: the watch goes on to the second one, and ends cleanly."""
    talker = watched.talker()
    talker.do("begin")
    arguments = ["watch", "--interval=0.2s", "--deadline=/beat=20", "--keep=60s", "--output=full/saved"]
    run = [sys.executable, "-c", "from pytest_ldos.cli.main import run; run()", *arguments]
    command = in_namespaces("mkdir full; mount -t tmpfs -o size=8k none full", run)
    with (
        doing(talker, "send wait,30 take"),
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout is not None
        lines, alarms = [], 0
        while alarms < 2 and (line := process.stdout.readline()):
            lines.append(line)
            alarms += "missed deadline" in line
        process.send_signal(signal.SIGTERM)
        rest, errors = process.communicate(timeout=60)
    assert process.returncode == exit_codes.ALARM, errors
    assert alarms == 2
    assert "cannot be written: No space left on device" in errors
    assert "Traceback" not in errors
    assert rest.splitlines()[-1].startswith("watched ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--deadline=/beat"], "--deadline is '/beat'"),
        (["--deadline=/beat=0"], "--deadline is '/beat=0'"),
        (["--deadline=/beat=nan"], "--deadline is '/beat=nan'"),
        (["--deadline=state fedback=3"], "unknown path 'state fedback'"),
        (["--interval=0s"], "--interval is 0"),
        (["--for=soon"], "--for is 'soon'"),
    ],
)
def test_wrong_option_is_refused(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run_ldos("watch", *arguments)
    assert done.returncode == exit_codes.USAGE
    assert message in done.stderr


def test_deadlines_of_paths_replace_those_of_the_project():
    paths, limits_ns = _parse_deadlines(["state feedback=2.5", "/scan=20"], BUILT_IN_PATHS)
    assert {each.name: each.deadline_ms for each in paths} == {
        "planning": 5000,
        "execution": None,
        "goal": None,
        "state feedback": 2.5,
    }
    assert limits_ns == {"/scan": 20_000_000}


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_terminal_shows_tables_in_place_below_the_alarms(monkeypatch):
    """Alarms stay, tables are replaced, and none is higher than the terminal."""
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(os, "get_terminal_size", lambda: os.terminal_size((80, 24)))

    def render(*, most: int, width: int, color: bool) -> Rendered:
        return Rendered("".join(f"row {number}\n" for number in range(most * 20)))

    assert say.redraw(render, 0, ["one alarm"]) == 23
    assert say.redraw(lambda **_: Rendered("short\n"), 23, ["other\x1b[2Jalarm"]) == 1
    shown = terminal.getvalue()
    assert shown.startswith("one alarm\nrow 0\n")
    assert shown.endswith("row 22\n\x1b[23F\x1b[Jother\\x1b[2Jalarm\nshort\n")
