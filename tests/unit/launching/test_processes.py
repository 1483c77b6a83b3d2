"""All processes of a launch are ended."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys

import pytest

from pytest_ldos import launching as processes
from pytest_ldos.host.fingerprint import pids_with
from pytest_ldos.launching import LaunchedProcess, end_survivors

HYDRA = """
import signal, subprocess, sys, time
def grow(*_):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    sys.exit()
signal.signal(signal.SIGINT, grow)
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def environment():
    return {"LDOS_TEST_LAUNCH": secrets.token_hex(8)}


def start(text: str, environment: dict[str, str]) -> subprocess.Popen:
    command = [sys.executable, "-c", text]
    child = subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def test_new_children_of_survivors_are_ended(environment, monkeypatch):
    monkeypatch.setattr(processes, "_LADDER", tuple((number, 60.0) for number, _ in processes._LADDER))
    with start(HYDRA, environment) as hydra:
        names = end_survivors(environment)
    assert pids_with(environment) == []
    assert len(names) == 2
    assert f"({hydra.pid})" in names[0]


def test_unkillable_process_is_reported(environment, monkeypatch):
    monkeypatch.setattr(processes, "_LADDER", ((0, 0.01),))  # signal 0 ends no process
    with start("import time; print('ready', flush=True); time.sleep(600)", environment) as child:
        try:
            with pytest.raises(RuntimeError, match=rf"survived SIGKILL: .*\({child.pid}\)"):
                end_survivors(environment)
        finally:
            child.kill()


def test_without_survivors_nothing_is_ended(environment):
    assert end_survivors(environment) == []


def test_description_of_an_ended_process():
    ends = [LaunchedProcess("arm-1", 1, code).describe() for code in (None, 1, -40)]
    assert ends == ["arm-1 is running", "arm-1 ended with exit code 1", "arm-1 was killed by signal 40"]
