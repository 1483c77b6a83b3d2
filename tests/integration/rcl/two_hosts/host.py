"""A host: its own name and network, a session daemon, and a node with a trace clock of its own.

``host.py FOLDER NAME COUNT``, in new namespaces. It prints its process id, and waits for a line before it begins: that
its network is there. Variables of the clock are those of `clock.c`.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.record.lttng import LttngRecorder

ADDRESSES = {"left": "10.77.0.1/24", "right": "10.77.0.2/24"}


def main(folder: Path, name: str, count: str) -> None:
    socket.sethostname(name)
    print(os.getpid(), flush=True)
    sys.stdin.readline()
    for command in (
        ["link", "set", "lo", "up"],
        ["address", "add", ADDRESSES[name], "dev", f"to_{name}"],
        ["link", "set", f"to_{name}", "multicast", "on", "up"],
        ["route", "add", "224.0.0.0/4", "dev", f"to_{name}"],
    ):
        subprocess.run(["ip", *command], check=True)
    clock = {"LTTNG_UST_CLOCK_PLUGIN": str(folder / "clock.so")}
    recorder = LttngRecorder(folder / name / "trace", folder / name)
    recorder.start()
    try:
        environment = {**os.environ, **recorder.environment, **clock}
        group = ProcessGroup(log_directory=folder / name, prefix=recorder.prefix, environment=environment)
        try:
            node = group.start(name, [sys.executable, str(Path(__file__).with_name("node.py")), name, count])
            assert node.process.wait(60) == 0, node.last_lines()
        finally:
            group.stop()
        assert recorder.pause().discarded_events == 0
    finally:
        recorder.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
