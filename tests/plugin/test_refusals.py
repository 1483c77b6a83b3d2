"""A session that is refused before anything is measured says why once, and leaves nothing."""

from __future__ import annotations

import os

import pytest

from pytest_ldos.host.lock import measuring_lock
from tests.plugin.conftest import AGAIN, SCENARIO

SWEEP = """
import pytest

@pytest.mark.baseline
@pytest.mark.ldos_sweep("memory_load.size", [64, 256])
def test_swept(ldos_scenario):
    ldos_scenario()
"""


def test_a_busy_machine_is_told_once_and_no_folder_is_left(run, project):
    project.makepyfile(test_scenario=SCENARIO + AGAIN + SWEEP)
    with measuring_lock():
        result = run("--ldos-report=report.json")
    assert result.ret == 11
    result.assert_outcomes(errors=4)
    shown = result.stdout.str()
    assert shown.count(f"another measuring session holds this machine: pid {os.getpid()}") == 1
    assert shown.count("refused for the same reason as test_scenario.py::test_reach") == 3
    result.stdout.fnmatch_lines(["tests refused before anything was measured: 4; see above"])
    assert not (project.path / ".ldos" / "sweeps").exists()
    assert not (project.path / ".ldos" / "runs").exists()
    assert (project.path / "report.json").read_text().count("another measuring session holds this machine") == 1


def test_what_would_spoil_every_measurement_is_reported_once(run, project):
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    project.makepyfile(test_scenario=SCENARIO + AGAIN)
    result = run("-n1")
    result.assert_outcomes(errors=2)
    assert result.stdout.str().count("run them alone, with -n 0") == 1
    result.stdout.fnmatch_lines(["refused for the same reason as test_scenario.py::test_reach"])


NO_CONNECTIONS = """
import socket
import pytest

@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def connect(*arguments):
        raise RuntimeError("Network is disabled")

    monkeypatch.setattr(socket.socket, "connect", connect, raising=False)
"""
"""As pytest-recording blocks the network."""


@pytest.mark.parametrize("blocked", [["--disable-socket"], ["--allow-hosts=127.0.0.1"]], ids=" ".join)
def test_a_plugin_that_blocks_sockets_is_named(run, project, blocked):
    pytest.importorskip("pytest_socket", reason="pytest-socket is not installed")
    result = run(*blocked)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "a plugin blocks the sockets * a measurement holds machine and DDS domain: pytest_socket: A test tried *",
            "  → mark the test with @pytest.mark.enable_socket, or give --force-enable-socket",
        ]
    )
    assert "Traceback" not in result.stdout.str()
    assert "SocketBlockedError" not in result.stdout.str()
    assert not (project.path / ".ldos").exists()
    assert run(*blocked, "--force-enable-socket").ret == 0
    project.makepyfile(test_scenario=SCENARIO.replace("@pytest", "@pytest.mark.enable_socket\n@pytest", 1))
    assert run(*blocked).ret == 0


def test_any_plugin_that_blocks_sockets_is_named(run, project):
    project.makepyfile(test_scenario=SCENARIO + NO_CONNECTIONS)
    result = run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["a plugin blocks the sockets *: Network is disabled", "  → let this test open sockets*"]
    )
