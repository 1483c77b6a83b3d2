"""A stimulus: the published chain of five messages, whose sink writes latencies, untraced and traced in each trial.

Every other trial begins with the traced one. A stage computes 60, 80, 70 or 50 ms, 260 ms together. The published
period of 100 ms keeps 2.6 CPUs busy; 300 ms keep less than one busy. The processes have real-time priority.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from ament_index_python.packages import PackageNotFoundError, get_package_prefix

PACKAGE = "ros2_message_flow_testcases"
PERIOD_MS, SECONDS, DISCOVERY_MESSAGES = 300, 20, 5
STAGES = (("a", "b", "60"), ("b", "c", "80"), ("c", "d", "70"), ("d", "e", "50"))
CHAIN = (
    ("sink_t", "e", "latencies"),
    *(("sync_one_to_one_t", *stage) for stage in STAGES),
    ("source_t", "a", str(PERIOD_MS)),
)


def outside() -> list[str]:
    """Words that lead out of the recorder's mount namespace, in which programs find the session daemon's sockets."""
    mounts = Path("/proc/self/ns/mnt").readlink()
    for parent in psutil.Process().parents():
        if Path(f"/proc/{parent.pid}/ns/mnt").readlink() != mounts:
            return ["nsenter", f"--target={parent.pid}", "--mount", f"--wdns={Path.cwd()}", "--"]
    return []


def latencies_ms(folder: str, *, traced: bool) -> list[float]:
    """Latencies from source to sink; the first, in which the processes discover each other, are left out."""
    home = {} if traced else {"LTTNG_HOME": folder, "HOME": folder}
    prefix = [] if traced else outside()
    programs = Path(get_package_prefix(PACKAGE)) / "lib" / PACKAGE
    started = [
        subprocess.Popen(
            [*prefix, "chrt", "--fifo", "10", "env", f"--chdir={folder}", str(programs / name), *words],
            env={**os.environ, **home},
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
        )
        for name, *words in CHAIN
    ]
    time.sleep(SECONDS)
    for each in reversed(started):
        each.send_signal(signal.SIGINT)
    for each in started:
        each.wait(10)
    (file,) = Path(folder).glob("latencies_*.txt")
    return [int(line) / 1e6 for line in file.read_text("ascii").split()][DISCOVERY_MESSAGES:]


def say(**event: object) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def main() -> None:
    try:
        get_package_prefix(PACKAGE)
    except PackageNotFoundError:
        say(event="refused", message=f"ROS package {PACKAGE} not found", remedy="build and source it: README.md")
        return
    say(event="ready")
    for line in sys.stdin:
        command = json.loads(line)
        begin_ns = time.monotonic_ns()
        found = {}
        for traced in (False, True) if (command["index"] or 0) % 2 else (True, False):
            with tempfile.TemporaryDirectory() as folder:
                found[traced] = latencies_ms(folder, traced=traced)
        numbers = {}
        for name, center in (("mean", statistics.fmean), ("median", statistics.median)):
            numbers |= {f"traced_{name}_ms": center(found[True]), f"untraced_{name}_ms": center(found[False])}
            numbers[f"added_{name}_us"] = 1000 * (center(found[True]) - center(found[False]))
        stamps = {"goal_sent": begin_ns, "result": time.monotonic_ns()}
        say(event="ended", id=command["id"], outcome="success", stamps_ns=stamps, numbers=numbers)


if __name__ == "__main__":
    main()
