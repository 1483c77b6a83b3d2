"""A bare Ubuntu as a folder, and programs that only write down what they were called with, for ``lab/bootstrap``."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

from tests.builders.machine import add_program

LAB = Path(__file__).parents[2] / "lab"
UBUNTU = 'PRETTY_NAME="Ubuntu 24.04.1 LTS"\nID=ubuntu\nVERSION_ID="24.04"\n'
CPU = "sys/devices/system/cpu"
SECRET = "github_pat_11TOKEN0_secret"

_NETWORK = '[ -z "${NO_NETWORK:-}" ] || { echo "Could not resolve host" >&2; exit 100; }'
_NAMED = 'for last; do :; done; grep -qx "$last" "$FAKES/{0}" 2>/dev/null'
_NOTED = 'for last; do :; done; echo "$last" >>"$FAKES/{0}"'
_PROGRAMS = {
    "apt-get": f'{_NETWORK}\nfor word; do echo "$word" >>"$FAKES/packages"; done',
    "apt-helper": f'{_NETWORK}\n: >"$3"',
    "curl": f'{_NETWORK}\n[ ! -p /dev/stdin ] || cat >>"$FAKES/curl-input"\n'
    'while [ $# -gt 0 ]; do [ "$1" != --output ] || cp "$FAKES/answer" "$2"; shift; done; cat "$FAKES/status" 2>/dev/null || true',
    "lttng": "",
    "groupadd": _NOTED.format("group"),
    "groupdel": "",
    "modprobe": "",
    "systemctl": '[ "$1" != is-active ] || [ -e "$FAKES/active-$3" ]',
    "update-grub": "",
    "useradd": _NOTED.format("passwd"),
    "userdel": "",
    "usermod": "",
}
_SILENT = {
    "chown": "",
    "dpkg-query": f"{_NAMED.format('packages')} && echo install ok installed",
    "getent": _NAMED.format("$1"),
    "hostname": "echo node-0.lab",
    "id": 'echo "${FAKE_UID:-0}"',
    "pgrep": '[ -e "$FAKES/busy" ]',
    "setpriv": 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"',
    "sudo": "echo 'User ldos-runner is not allowed to run sudo.'",
    "sync": "",
    "uname": '[ "$1" = -m ] && echo x86_64 || echo 6.8.0-45-generic',
}
_FUSE = """if [ -e "$FAKES/fuse" ]; then
  read -r left <"$FAKES/fuse"
  [ "$left" -gt 1 ] || kill -KILL 0
  echo $((left - 1)) >"$FAKES/fuse"
fi
"""
"""Kills whoever called, and all of theirs, at the call whose number a test has written there."""

_PYTHON = f"""if [ "$1 $2" = "-m venv" ]; then
  for last; do :; done
  mkdir -p "$last/bin"
  cp "$0" "$last/bin/python"
  printf '%s\\n' '#!/bin/sh' '[ -n "$ROS_DISTRO" ] || exit 2' 'echo "$XDG_CACHE_HOME/$*/local_setup.sh"' >"$last/bin/ldos"
  chmod 755 "$last/bin/ldos"
elif [ "$1 $2" != "-m pip" ]; then
  exec "{sys.executable}" "$@"
fi"""


@dataclass(frozen=True)
class LabMachine:
    """Attributes:
    root: of its files.
    fakes: folder of the programs, and of what they know.
    """

    root: Path
    fakes: Path

    @property
    def calls(self) -> list[str]:
        """Calls that could change a system, one per line."""
        file = self.fakes / "calls"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def environment(self) -> dict[str, str]:
        path = f"{self.fakes / 'bin'}:{os.environ['PATH']}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LDOS_", "GIT_"))}
        return {**kept, "PATH": path, "FAKES": str(self.fakes), "LDOS_ROOT": str(self.root)}

    def configure(self, **settings: str) -> Path:
        """Its settings, in the place where they belong."""
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        return self.write("etc/ldos-lab/lab.conf", text)

    def write(self, place: str, text: str, mode: int = 0o644) -> Path:
        file = self.root / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
        return file

    def read(self, place: str) -> str:
        return (self.root / place).read_text()

    def know(self, name: str, text: str = "") -> None:
        """Something that the programs answer with."""
        (self.fakes / name).write_text(text)

    def replace(self, name: str, script: str) -> None:
        """Another program in place of one of them; it is written down as well."""
        _add(self.fakes, name, script, is_noted=True)

    def run(self, program: Path | str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", str(program), *arguments],
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            timeout=300,
            check=False,
        )

    def begin(self, *arguments: str) -> subprocess.Popen[bytes]:
        """A bootstrap that is not waited for."""
        command = ["sh", str(LAB / "bootstrap"), *arguments]
        return subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, start_new_session=True)

    def bootstrap(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return self.run(LAB / "bootstrap", *arguments, **variables)

    def tree(self) -> dict[str, str]:
        """Digest of each file, by its place."""
        files = [path for path in sorted(self.root.rglob("*")) if path.is_file()]
        return {str(path.relative_to(self.root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def build_lab_machine(folder: Path) -> LabMachine:
    """An Ubuntu with four CPUs whose governor is ``schedutil``, with turbo and SMT."""
    machine = LabMachine(folder / "root", folder / "fakes")
    for name, script in _PROGRAMS.items():
        _add(machine.fakes, name, script, is_noted=True)
    for name, script in _SILENT.items():
        _add(machine.fakes, name, script, is_noted=False)
    _add(machine.fakes, "python3", _PYTHON, is_noted=True)
    (machine.root / "run").mkdir(parents=True)
    machine.write("etc/os-release", UBUNTU)
    machine.write("opt/ros/jazzy/setup.sh", "ROS_DISTRO=jazzy; export ROS_DISTRO\n")
    machine.write("etc/passwd", "root:x:0:0::/root:/bin/sh\n")
    machine.write("etc/group", "root:x:0:\n")
    machine.write("proc/self/mountinfo", "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n")
    machine.write("proc/sys/kernel/random/boot_id", "8a1e\n")
    machine.write("proc/sys/kernel/random/uuid", "5b0d1a2c-7e41-4f7a-9c55-1d2f3a4b5c6d\n")
    for name, value in {
        "present": "0-3",
        "online": "0-3",
        "isolated": "",
        "smt/active": "1",
        "smt/control": "on",
    }.items():
        machine.write(f"{CPU}/{name}", f"{value}\n")
    machine.write(f"{CPU}/intel_pstate/no_turbo", "0\n")
    for cpu in range(4):
        machine.write(f"{CPU}/cpu{cpu}/cpufreq/scaling_governor", "schedutil\n")
        machine.write(f"{CPU}/cpu{cpu}/cpufreq/scaling_available_governors", "performance schedutil\n")
    for number in (24, 25):
        machine.write(f"proc/irq/{number}/smp_affinity_list", "0-3\n")
    machine.write("proc/irq/default_smp_affinity", "f\n")
    return machine


def _add(fakes: Path, name: str, script: str, *, is_noted: bool) -> None:
    note = f'printf \'%s\\n\' "{name} $*" >>"$FAKES/calls"\n{_FUSE}' if is_noted else ""
    add_program(fakes / "bin", name, note + script)


def pack_runner(machine: LabMachine) -> str:
    """Sets the archive of a runner that curl fetches next; returns its digest."""
    folder = machine.fakes / "package"
    add_program(folder, "run.sh", "true")
    add_program(folder / "bin", "Runner.Listener", "true")
    with tarfile.open(machine.fakes / "answer", "w:gz") as archive:
        archive.add(folder, arcname=".")
    return hashlib.sha256((machine.fakes / "answer").read_bytes()).hexdigest()


def registration(**files: str) -> str:
    """GitHub's answer to who asks for a just-in-time runner: files of its folder, by name without the dot."""
    encoded = {f".{name}": base64.b64encode(content.encode()).decode() for name, content in files.items()}
    config = base64.b64encode(json.dumps(encoded).encode()).decode()
    return json.dumps({"runner": {"id": 23}, "encoded_jit_config": config})


def configure_runner(machine: LabMachine, digest: str = "a" * 64, **settings: str) -> None:
    """Settings that ask for a runner."""
    machine.configure(RUNNER_SCOPE="orgs/acme", RUNNER_VERSION="2.336.0", RUNNER_SHA256=digest, **settings)
