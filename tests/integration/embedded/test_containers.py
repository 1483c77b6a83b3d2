"""Programs of two containers in one trace, recorded as examples/containers does."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pytest_ldos.record.lttng import lttng_available
from pytest_ldos.record.run_directory import COMMAND
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.build import build_execution
from tests.builders.namespaces import in_namespaces
from tests.builders.pages import ROOT

RECORD = ROOT / "examples/containers/record"
EMIT = """
from pytest_ldos.robot.dds.emission import emit, new_handle
emit.rcl_node_init(new_handle(), new_handle(), "talker", "/")
"""

DAEMON = """
lttng-sessiond --daemonize --pidfile "$1/daemon"
daemon=$(cat "$1/daemon")
trap 'kill "$daemon"; tail --pid="$daemon" -f /dev/null' EXIT
shift
"$@"
"""
BOTH = '"$@" && "$@"'


@pytest.mark.starts_nothing
def test_two_containers_are_two_processes(tmp_path):
    if os.geteuid() != 0 or not lttng_available().ok:
        pytest.skip("LTTng as root is needed, for a session daemon that containers see")
    container = in_namespaces(
        "mount -t tmpfs none /dev/shm", [sys.executable, "-c", EMIT], kinds=("mount", "uts", "ipc", "pid")
    )
    container[1:1] = ["--fork", "--mount-proc"]
    trace = tmp_path / "trace"
    done = subprocess.run(
        [
            *(*COMMAND, "bash", "-euc", DAEMON, "bash", tmp_path),
            *(RECORD, trace, "sh", "-euc", BOTH, "sh", *container),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    recorded = read_trace(trace)
    model = build_execution(recorded)
    assert set(recorded.events["ros2:rcl_node_init"]["vpid"].tolist()) == {1}
    assert model.processes["pid"].to_list() == [1, 1]
