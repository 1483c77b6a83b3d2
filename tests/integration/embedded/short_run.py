"""One short real run, where it can be on a machine with little in it; what only looks at it shares it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.builders.namespaces import in_namespaces, why_no_namespaces
from tests.integration.project import FAST, Project, left_in_memory, running, shared_memory

TRIALS = 2

METRICS = """
[tool.ldos]
metrics = [
  "path:state feedback:p50",
  "path:state feedback:p99",
  "path:state feedback:misses",
  "path:planning:p50",
  "rate:/joint_states",
  "rate:/tf",
  "gap:/tf",
  "cpu:state_publisher",
  "cpu:*",
  "memory:*",
  "memory:move_group",
  "switches:simulator",
  "faults:*",
]
"""
"""Those that the settings declare, in addition to ours."""

NO_NAMES = """
mount --bind /dev/null /etc/hosts
mount --bind nsswitch.conf /etc/nsswitch.conf
if getent hosts localhost; then exit 99; fi
"""

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""Makes Python accept it."""

SOCKETS = """
import contextlib, json
from pathlib import Path
import psutil
from pytest_ldos.measure.trial import rig

def addresses():
    \"\"\"Local addresses of all IP sockets of our children, as the kernel lists them.\"\"\"
    sockets = set()
    for process in psutil.Process().children(recursive=True):
        for descriptor in Path(f"/proc/{process.pid}/fd").iterdir():
            target = str(descriptor.readlink())
            if target.startswith("socket:["):
                sockets.add(target[8:-1])
    tables = ("udp", "udp6", "udplite", "raw", "raw6", "tcp", "tcp6")
    for table in tables:
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in sockets:
                yield table, fields[1]

opened = rig.open_rig

@contextlib.contextmanager
def noted(*arguments, **settings):
    with opened(*arguments, **settings) as made:
        Path("sockets.json").write_text(json.dumps(list(addresses())))
        yield made

rig.open_rig = noted
"""


class ShortRun:
    """Output and files of the run.

    Attributes:
        not_bare: why it was on this machine as it is; empty if it saw no names, and a locale of ASCII alone.
    """

    def __init__(self, project: Project) -> None:
        before, memory = running(), shared_memory()
        for name in ("LANG", "LC_CTYPE"):
            project.environment.pop(name, None)
        project.environment |= ASCII
        project.write("nsswitch.conf", "hosts: files\n")
        project.write("conftest.py", SOCKETS)
        project.write("pyproject.toml", f"[tool.pytest.ini_options]\naddopts = '--strict-markers'\n{METRICS}{FAST}")
        command = project.command(
            f"--ldos-trials={TRIALS}",
            "--ldos-warmup=1",
            "--ldos-traces=all",
            "--ldos-benchmark-json=out.json",
            "--ldos-report=Größe/report.html",
        )
        self.project = project
        self.not_bare = why_no_namespaces("mount")
        self.code, self.output = self.call(*(command if self.not_bare else in_namespaces(NO_NAMES, command)))
        self.left_running = running() - before
        self.left_in_memory = left_in_memory(memory)
        self.folder = next(project.path.glob(".ldos/runs/*/baseline"), Path("absent"))

    def call(self, *command: str) -> tuple[int, str]:
        done = subprocess.run(
            command, cwd=self.project.path, env=self.project.environment, capture_output=True, check=False, timeout=300
        )
        return done.returncode, (done.stdout + done.stderr).decode()
