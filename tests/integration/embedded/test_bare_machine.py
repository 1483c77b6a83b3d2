"""A run on a machine with little in it: no names, no other device, or other devices that nobody is to hear."""

from __future__ import annotations

import json
import subprocess

from tests.builders.namespaces import apart

NO_NAMES = """
mount --bind /dev/null /etc/hosts
mount --bind nsswitch.conf /etc/nsswitch.conf
if getent hosts localhost; then exit 99; fi
"""

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


def test_no_name_is_resolved_and_every_socket_is_on_the_loopback_device(project, leaves_nothing):
    """As on a bare Debian root, whose /etc/hosts is empty."""
    project.write("nsswitch.conf", "hosts: files\n")
    project.write("conftest.py", SOCKETS)
    command = apart(NO_NAMES, project.command("--ldos-trials=1", "--ldos-warmup=0"))
    done = subprocess.run(
        command, cwd=project.path, env=project.environment, capture_output=True, text=True, check=False, timeout=180
    )
    assert done.returncode == 0, done.stdout + done.stderr
    sockets = json.loads((project.path / "sockets.json").read_text())
    assert len(sockets) >= 3 * 4, "four processes, each with a socket for discovery, data and sending"
    assert {address.partition(":")[0] for _, address in sockets} == {"0100007F"}
