"""A sweep of the embedded stack that pytest-xdist spreads: over two workers here, and to one that ssh reaches."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pytest_ldos.campaign.sweep import CellState, all_sweeps
from tests.builders.ours import OURS
from tests.integration.project import Project

pytest.importorskip("xdist", reason="pytest-xdist is not installed (it comes with the extra dev)")

SWEEP = """
import pytest

@pytest.mark.baseline
@pytest.mark.ldos_sweep("stack.planning_time_s", [5, 6])
def test_reach(ldos_scenario):
    ldos_scenario()
"""
FEW = ("-m", "baseline", "--ldos-trials=1", "--ldos-warmup=0", "--ldos-success-rate=0")

SSHD = """
ListenAddress 127.0.0.1:{port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
SetEnv LDOS_LOCK={lock} {ours}
"""

SSH = """
Host there
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {folder}/user_key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  StrictHostKeyChecking yes
"""


def why_no_ssh() -> str:
    """The missing requirement of a local ssh server; empty if it can run."""
    missing = [name for name in ("ssh", "ssh-keygen", "sshd") if shutil.which(name, path=_PATH) is None]
    if missing:
        return f"{', '.join(missing)} not found (apt-get install openssh-client openssh-server)"
    if os.geteuid() == 0 and not Path("/run/sshd").is_dir():
        return "sshd as root asks for an empty folder /run/sshd, which is not there (mkdir /run/sshd)"
    return ""


_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"


@pytest.fixture
def ssh_config(project, tmp_path_factory) -> Iterator[Path]:
    """An ssh server on loopback for ``there``, with its own keys, that measures under the project's lock."""
    if reason := why_no_ssh():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("ssh")
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    for key in ("host_key", "user_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
    lock, ours = project.environment["LDOS_LOCK"], f"{OURS}={project.environment[OURS]}"
    values = {"port": port, "folder": folder, "user": getpass.getuser(), "lock": lock, "ours": ours}
    (folder / "sshd_config").write_text(SSHD.format(**values))
    (folder / "ssh_config").write_text(SSH.format(**values))
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {(folder / 'host_key.pub').read_text()}")
    sshd = shutil.which("sshd", path=_PATH)
    assert sshd is not None
    server = subprocess.Popen(
        [sshd, "-D", "-e", "-f", folder / "sshd_config"], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        _await_listening(server)
        yield folder / "ssh_config"
    finally:
        server.terminate()
        server.communicate(timeout=20)


def _await_listening(server: subprocess.Popen) -> None:
    assert server.stderr is not None
    reported = []
    for line in server.stderr:
        reported.append(line)
        if "Server listening" in line:
            return
    pytest.fail(f"sshd did not start: {''.join(reported)}")


@pytest.mark.acceptance
def test_two_workers_here_take_turns(project, leaves_nothing):
    project.write("test_scenario.py", SWEEP)
    code, output = project.run("-n", "2", "-v", *FEW)
    assert code == 0, output
    assert_both_were_interleaved(project)
    assert "[gw0]" in output
    assert "[gw1]" in output


def test_results_of_an_ssh_worker_are_returned(project, ssh_config, tmp_path_factory, leaves_nothing):
    """As in the README; this machine is also the other one, so their workers alternate."""
    project.write("test_scenario.py", SWEEP)
    there = tmp_path_factory.mktemp("there")
    remote = f"ssh=there//ssh_config={ssh_config}//python={sys.executable}//chdir={there}"
    code, output = project.run("-d", "--tx", "popen", "--tx", remote, "--rsyncdir=.", str(project.path), *FEW)
    assert code == 0, output
    assert_both_were_interleaved(project)
    assert len(list(project.path.glob(".ldos/runs/*/*/trials.json"))) == 1
    assert len(list(there.glob(f"{project.path.name}/.ldos/runs/*/*/trials.json"))) == 1
    assert not list(there.rglob("sweeps"))


def assert_both_were_interleaved(project: Project) -> None:
    """Each worker held the machine for one cell, while the other did not; the session has both."""
    (folder,) = all_sweeps(project.path / ".ldos")
    first, second = sorted(folder.records().values(), key=lambda record: record.began_ns)
    assert first.state == second.state == CellState.MEASURED
    assert 0 < first.began_ns < first.ended_ns <= second.began_ns < second.ended_ns
