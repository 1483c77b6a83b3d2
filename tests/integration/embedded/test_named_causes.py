"""Faults of the machine that a process only says with a signal or an exit code."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from pytest_ldos.base import exit_codes
from tests.builders.namespaces import in_namespaces

pytestmark = pytest.mark.starts_nothing


def run_on(project, script: str, *, kinds: tuple[str, ...], prefix: tuple[str, ...] = ()) -> tuple[int, str]:
    command = in_namespaces(script, [*prefix, *project.command("--ldos-warmup=0", "--ldos-trials=1")], kinds=kinds)
    done = subprocess.run(
        command, cwd=project.path, env=project.environment, capture_output=True, text=True, check=False, timeout=300
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.acceptance
@pytest.mark.parametrize("room", ["1m", pytest.param("20m", marks=pytest.mark.acceptance)])
def test_too_little_shared_memory_for_the_tracer_is_named(project, leaves_no_process, room):
    code, output = run_on(project, f"mount -t tmpfs -o size={room} none /dev/shm", kinds=("mount",))
    assert code == exit_codes.INVALID, output
    assert "infra" in output
    assert "the tracer's buffers do not fit into /dev/shm: " in output
    assert "--shm-size=1g" in output
    assert "Traceback" not in output


OCCUPY = """
import os, resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
held = []
for domain in range(1, 102):
    for participant in range(1, 62):
        held.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        held[-1].bind(("0.0.0.0", 7400 + 250 * domain + 10 + 2 * participant))
        os.set_inheritable(held[-1].fileno(), True)
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 8000, reason="a process may not have so many sockets here"
)
def test_occupied_ports_are_named_with_their_process(project, leaves_no_process):
    """Those of every participant but the first."""
    prefix = (sys.executable, "-c", OCCUPY)
    code, output = run_on(project, "ip link set lo up", kinds=("net",), prefix=prefix)
    assert code == exit_codes.INVALID, output
    assert "all DDS domains from 1 to 101 are in use on this machine: UDP port 7662 is held by pid " in output
    assert "Traceback" not in output
