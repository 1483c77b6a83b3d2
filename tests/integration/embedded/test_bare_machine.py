"""A run on a machine with little in it: no names, a locale of ASCII alone, no device for others to hear."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders.namespaces import apart
from tests.integration.embedded.conftest import running
from tests.integration.project import Project, make_project, shared_memory

NO_NAMES = """
mount --bind /dev/null /etc/hosts
mount --bind nsswitch.conf /etc/nsswitch.conf
if getent hosts localhost; then exit 99; fi
"""

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""Python is told to believe it."""

SOCKETS = """
import json
from pathlib import Path
import psutil, pytest

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

@pytest.fixture
def ldos_trials(ldos_trials):
    def noted(*arguments, **options):
        Path("sockets.json").write_text(json.dumps(list(addresses())))
        return ldos_trials(*arguments, **options)
    return noted
"""


class Run:
    """What the run printed and left."""

    def __init__(self, project: Project) -> None:
        before, memory = running(), shared_memory()
        for name in ("LANG", "LC_CTYPE"):
            project.environment.pop(name, None)
        project.environment |= ASCII
        project.write("nsswitch.conf", "hosts: files\n")
        project.write("conftest.py", SOCKETS)
        arguments = ("--ldos-trials=1", "--ldos-warmup=0", "--ldos-report=Größe/report.html")
        self.project = project
        self.code, self.output = self.call(*apart(NO_NAMES, project.command(*arguments)))
        self.left_running = running() - before
        self.left_in_memory = shared_memory() - memory

    def call(self, *command: str) -> tuple[int, str]:
        done = subprocess.run(
            command, cwd=self.project.path, env=self.project.environment, capture_output=True, check=False, timeout=180
        )
        return done.returncode, (done.stdout + done.stderr).decode()


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    return Run(make_project(tmp_path_factory.mktemp("bare")))


def test_it_is_green_and_leaves_nothing(run):
    assert run.code == 0, run.output
    assert "trials succeeded" in run.output
    assert run.left_running == set()
    assert run.left_in_memory == set()


def test_no_name_is_resolved_and_every_socket_is_on_the_loopback_device(run):
    """As on a bare Debian root, whose /etc/hosts is empty."""
    sockets = json.loads((run.project.path / "sockets.json").read_text())
    assert len(sockets) >= 3 * 4, "four processes, each with a socket for discovery, data and sending"
    assert {address.partition(":")[0] for _, address in sockets} == {"0100007F"}


def test_the_locale_knows_ascii_alone(run):
    _, said = run.call(sys.executable, "-c", "import locale; print(locale.getpreferredencoding())")
    assert said.strip() == "ANSI_X3.4-1968"


def test_the_report_needs_no_other_locale(run):
    """`lttng --version` says its authors' names with letters that are none of ASCII, our reports have ``≈`` and ``…``."""
    assert Path(run.project.path, "Größe", "report.html").is_file()


@pytest.mark.parametrize(
    "arguments",
    [["report", "latest"], ["doctor"], pytest.param(["--help"], marks=pytest.mark.acceptance)],
    ids=" ".join,
)
def test_no_command_needs_another_locale(run, arguments):
    code, said = run.call(sys.executable, "-c", "from pytest_ldos.cli.main import run; run()", *arguments)
    assert "Traceback" not in said
    assert code in {0, 1}, said
