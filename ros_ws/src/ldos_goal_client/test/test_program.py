# Copyright (c) 2026 The pytest-ldos authors
#
# Permission is hereby granted, free of charge, to any person obtaining a copy
# of this software and associated documentation files (the "Software"), to deal
# in the Software without restriction, including without limitation the rights
# to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
# copies of the Software, and to permit persons to whom the Software is
# furnished to do so, subject to the following conditions:
#
# The above copyright notice and this permission notice shall be included in
# all copies or substantial portions of the Software.
#
# THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
# IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
# FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL
# THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
# LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
# OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN
# THE SOFTWARE.

"""The goal client as a program, with an action server in place of move_group."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

FAKE = Path(__file__).parent / "fake_move_group.py"
GOAL_ID = "0123456789abcdef0123456789abcdef"
POSE = {"position": [0.4, 0.2, 0.5], "orientation": [0.0, 0.0, 0.0, 2.0]}
PATIENCE_S = 30
READY = '{"event":"ready","plan_only":true}'
PHASES = ["goal_sent", "goal_accepted", "planning", "executing", "result"]


class Program:
    """A child process whose lines can be waited for."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.lines = []
        self.errors = ""
        self._changed = threading.Condition()
        self._readers = [
            threading.Thread(target=self._read_lines, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read_lines(self):
        for line in self.process.stdout:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()

    def _read_errors(self):
        self.errors = self.process.stderr.read()

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def await_line(self, wanted):
        with self._changed:
            came = self._changed.wait_for(lambda: wanted in self.lines, PATIENCE_S)
        assert came, f"{wanted!r} did not come; {self.lines}"

    def await_end(self):
        code = self.process.wait(PATIENCE_S)
        for reader in self._readers:
            reader.join(PATIENCE_S)
        return code

    def results(self):
        return [json.loads(line) for line in self.lines if '"result"' in line]

    def end(self):
        """Let it say goodbye: who is killed stays visible to the next test for a while."""
        for number in (signal.SIGCONT, signal.SIGINT):
            if self.process.poll() is None:
                self.process.send_signal(number)
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(PATIENCE_S)
            raise
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()


@contextmanager
def running(command):
    program = Program(command)
    try:
        yield program
    finally:
        program.end()


@contextmanager
def fake_move_group(*publishes):
    with running([sys.executable, str(FAKE), *publishes]) as program:
        program.await_line("up")
        yield program


@pytest.fixture(name="server")
def _server():
    with fake_move_group("states", "transforms") as program:
        yield program


@pytest.fixture(name="client")
def _client():
    """Start the goal client, and command goals with these names where it gets ready."""

    @contextmanager
    def start(*names, timeout=20.0, is_ready=True, **parameters):
        settings = {"server_timeout": 20.0, **parameters}
        arguments = [word for key, value in settings.items() for word in ("-p", f"{key}:={value}")]
        with running([os.environ["GOAL_CLIENT"], "--ros-args", *arguments]) as program:
            if is_ready:
                program.await_line(READY)
            for number, name in enumerate(names):
                program.say(command_line(name, goal_id=f"{number:032x}", timeout_s=timeout, seed=None))
            if names:
                program.process.stdin.close()
            yield program

    return start


def command_line(name, **changes):
    goal = {"name": name, "link": "panda_link8", "pose": POSE, "joints": None}
    return json.dumps(
        {
            "goal_id": GOAL_ID,
            "goal": goal,
            "seed": 1,
            "trial": {"scenario": "test", "index": 0},
            "start": None,
            "planning_time_s": 1.0,
            "velocity_scaling": 0.5,
            "acceleration_scaling": 0.5,
            "timeout_s": 20.0,
            **changes,
        }
    )


def test_every_goal_is_reported(server, client):
    with client("far", "near") as program:
        assert program.await_end() == 0
    goals = [line for line in server.lines if line.startswith("goal")]
    assert goals == ["goal far", "goal near"]
    assert len(program.results()) == 2
    for result in program.results():
        assert result["error_code"] == 1
        assert list(result["stamps_ns"]) == PHASES
        stamps = list(result["stamps_ns"].values())
        assert stamps == sorted(stamps)
        assert stamps[-1] <= time.monotonic_ns()
        assert result["plan_duration_ns"] == 1_900_000_000
        assert result["plan_points"] == 2
        assert result["planning_time_s"] == 0.0
        assert result["position_error_m"] == pytest.approx(0.003)
        assert result["rotation_error_rad"] == pytest.approx(0.0, abs=1e-9)
    assert [result["goal_id"] for result in program.results()] == [f"{each:032x}" for each in (0, 1)]


def test_the_error_code_is_passed_on(server, client):
    with client("fail", "far") as program:
        assert program.await_end() == 0
    assert [result["error_code"] for result in program.results()] == [-4, 1]


def test_a_goal_that_is_refused(server, client):
    with client("refused") as program:
        assert program.await_end() == 0
    (result,) = program.results()
    assert result["error_code"] == 99999
    assert "refused" in result["message"]
    assert list(result["stamps_ns"]) == ["goal_sent", "result"]


def test_another_group(server, client):
    with client("far", group="panda_leg") as program:
        assert program.await_end() == 0
    (result,) = program.results()
    assert result["error_code"] == -15
    assert "executing" not in result["stamps_ns"]
    assert result["plan_duration_ns"] is None


def test_a_result_without_a_code_is_a_failure(server, client):
    with client("codeless") as program:
        assert program.await_end() == 0
    (result,) = program.results()
    assert result["error_code"] == 99999
    assert "without an error code" in result["message"]


def test_no_action_server(client):
    with client("far", is_ready=False, server_timeout=0.5) as program:
        assert program.await_end() == 3
    assert program.lines == []
    assert "no action server /move_action within 0.5 s" in program.errors


def test_no_joint_state(client):
    with fake_move_group("transforms"), client("far", is_ready=False, server_timeout=3.0) as program:
        assert program.await_end() == 3
    assert "no joint state on /joint_states within 3.0 s" in program.errors


def test_no_transform_leaves_the_error_unknown(client):
    with fake_move_group("states"), client("far") as program:
        assert program.await_end() == 0
    (result,) = program.results()
    assert result["position_error_m"] is None
    assert result["rotation_error_rad"] is None


def test_a_goal_that_takes_too_long_is_cancelled(server, client):
    with client("slow", timeout=0.5) as program:
        assert program.await_end() == 0
    assert "cancel" in server.lines
    (result,) = program.results()
    assert result["error_code"] == -6
    assert result["message"] == "no result within 0.5 s; cancelled"
    assert result["stamps_ns"]["result"] - result["stamps_ns"]["goal_sent"] >= 500_000_000


def test_a_server_that_leaves_is_noticed_at_once(server, client):
    with client("leave", timeout=25.0) as program:
        assert program.await_end() == 0
    (result,) = program.results()
    assert result["error_code"] == -25
    assert result["message"] == "the action server /move_action disappeared"
    assert result["stamps_ns"]["result"] - result["stamps_ns"]["executing"] < 5_000_000_000


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_running_goal(server, client, number):
    with client("slow", "far") as program:
        server.await_line("monitor")
        program.process.send_signal(number)
        assert program.await_end() == 130
    assert "cancel" in server.lines
    (result,) = program.results()
    assert result["error_code"] == -7
    assert result["message"] == "interrupted; cancelled"


def test_a_signal_ends_waiting_for_the_server(client):
    with client(is_ready=False) as program:
        await_handler(program.process.pid)
        program.process.send_signal(signal.SIGINT)
        assert program.await_end() == 130
    assert program.lines == []


def await_handler(pid):
    """Return when the process has a handler for SIGINT."""
    deadline = time.monotonic() + PATIENCE_S
    bit = 1 << (signal.SIGINT - 1)
    while time.monotonic() < deadline:
        status = Path(f"/proc/{pid}/status").read_text()
        if int(status.split("SigCgt:")[1].split()[0], 16) & bit:
            return
        time.sleep(0.01)
    pytest.fail("the program does not catch SIGINT")


def test_commands_on_standard_input(server, client):
    with client() as program:
        program.say(command_line("far"))
        program.say("faster!")
        program.say(command_line("far", velocity_scaling=2.0))
        program.say(command_line("near", goal_id=GOAL_ID[::-1], trial=None))
        program.process.stdin.close()
        assert program.await_end() == 0
    assert json.loads(program.lines[0]) == {"event": "ready", "plan_only": True}
    assert [result["error_code"] for result in program.results()] == [1, 99999, 1]
    assert [result["goal_id"] for result in program.results()] == [GOAL_ID, GOAL_ID, GOAL_ID[::-1]]
    assert program.results()[1]["message"].startswith("bad command: 'velocity_scaling'")
    assert "bad command: no JSON" in program.errors


def test_feedback_before_the_response_counts(server, client):
    """A client that gets no CPU time finds the response and the feedback waiting together."""
    with client("hold") as program:
        server.await_line("goal hold")
        program.process.send_signal(signal.SIGSTOP)
        server.say("go")
        server.await_line("monitor")
        program.process.send_signal(signal.SIGCONT)
        server.say("end")
        assert program.await_end() == 0
    (result,) = program.results()
    stamps = list(result["stamps_ns"].values())
    assert list(result["stamps_ns"]) == PHASES
    assert stamps == sorted(stamps)


@pytest.mark.parametrize(
    ("parameters", "reason"), [({"group": '""'}, "group"), ({"server_timeout": "soon"}, "server_timeout")]
)
def test_bad_settings_are_named(client, parameters, reason):
    with client(is_ready=False, **parameters) as program:
        assert program.await_end() == 2
    assert program.lines == []
    assert reason in program.errors


def test_hanging_server_times_out(server, client):
    with client("stop", timeout=0.5) as program:
        assert program.await_end() == 0
    (result,) = program.results()
    assert result["error_code"] == -6
    assert result["message"] == "no result within 0.5 s; cancelling it had no answer"
    waited_ns = result["stamps_ns"]["result"] - result["stamps_ns"]["goal_sent"]
    assert 1_500_000_000 <= waited_ns < 3_000_000_000


def test_killed_server_times_out(server, client):
    """Nobody says goodbye then: DDS notices after its lease, the time-out may be sooner."""
    with client("die", timeout=2.0) as program:
        assert program.await_end() == 0
    (result,) = program.results()
    assert result["error_code"] in (-6, -25)
    assert result["stamps_ns"]["result"] - result["stamps_ns"]["goal_sent"] < 4_000_000_000
