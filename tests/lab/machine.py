"""A machine that is booted from a root, with systemd as its first process, by ``systemd-nspawn``."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.lab.root import overlay

_ENVIRONMENT: Final = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
_ENDED_WITH_US: Final = ("setpriv", "--pdeathsig=KILL", "unshare", "--pid", "--mount-proc", "--fork", "--kill-child")
_PATIENCE_S: Final = 120.0
_FORGET_KEYS: Final = """
for user in $(awk '$1 + 0 >= 400000 && $1 + 0 < 500000 { print $1 + 0 }' /proc/key-users); do
  setpriv --reuid="$user" --clear-groups --regid="$user" sh -c '
    for key in $(awk -v user="$0" "\\$6 == user { print \\$1 }" /proc/keys); do keyctl invalidate "$((0x$key))" || true; done
  ' "$user"
done
"""


class LabMachine:
    """A machine whose files lie in an overlay, so that they outlive a boot and not the machine.

    Attributes:
        root: its files, from outside.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._console = root.with_suffix(".console")
        self._nspawn: subprocess.Popen[bytes] | None = None

    def boot(self) -> None:
        """Returns when all of its services have been started."""
        command = ["systemd-nspawn", "--register=no", "--keep-unit", "--boot", f"--directory={self.root}"]
        # Its network is its own loopback device; calls that have to do with keys are not filtered, as on a real machine.
        command += ["--private-network", "--link-journal=no", "--system-call-filter=@keyring", "--console=pipe"]
        command += ["--hostname=lab", "--capability=CAP_SYS_RESOURCE"]
        # In a control group, which systemd takes for the whole machine's, and below a process without which all ends.
        command = ["sh", "-euc", 'echo $$ >"$0/cgroup.procs"; exec "$@"', str(self._group()), *_ENDED_WITH_US, *command]
        with self._console.open("ab") as console:
            self._nspawn = subprocess.Popen(
                command,
                env={**os.environ, "UNIFIED_CGROUP_HIERARCHY": "1", "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                start_new_session=True,
            )
        self.await_that(lambda: self._first_process() is not None, "its first process")
        self.await_that(lambda: self.run("test", "-S", "/run/systemd/private").returncode == 0, "systemd")
        # A failed unit is for a test to find.
        state = self.run("systemctl", "is-system-running", "--wait").stdout.strip()
        assert state in {"running", "degraded"}, state

    def run(self, *command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Runs a program as root, outside of any service."""
        return subprocess.run(
            ["nsenter", "--target", str(self._first_process()), "--all", "--", *command],
            env=_ENVIRONMENT,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def shell(self, script: str, *arguments: str) -> str:
        """Output of a script run as root; a failed script ends the test."""
        done = self.run("sh", "-euc", script, "sh", *arguments)
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout

    def reboot(self) -> None:
        """Stops all services, then starts all again."""
        assert self._nspawn is not None
        self.run("systemctl", "reboot")
        self._nspawn.wait(timeout=_PATIENCE_S)
        self.boot()

    def cut_off(self) -> None:
        """Ends the machine as a power failure does; what is on its disk stays."""
        first = self._first_process()
        assert self._nspawn is not None
        assert first is not None
        os.kill(first, signal.SIGKILL)
        self._nspawn.wait(timeout=_PATIENCE_S)
        self._nspawn = None

    def await_that(self, holds: Callable[[], bool], what: str, *, patience_s: float = _PATIENCE_S) -> None:
        """Returns as soon as something holds; fails, with what the machine logged, when it does not."""
        deadline = time.monotonic() + patience_s
        while not holds():
            assert self._is_on(), self._console.read_text(errors="replace")
            assert time.monotonic() < deadline, f"{what} did not come\n{self.journal()}"
            time.sleep(0.05)

    @property
    def out_of_service(self) -> str:
        """The reason why it takes no jobs; empty if it does."""
        file = self.root / "var/lib/ldos-lab/out-of-service"
        return file.read_text() if file.exists() else ""

    def await_runner_after(self, user: int) -> None:
        """Returns when a job of that user has ended and another runner waits for a job."""

        def waits() -> bool:
            assert self.out_of_service == "", self.out_of_service
            listed = self.run("ps", "-o", "uid=", "-C", "Runner.Listener").stdout.split()
            return bool(listed) and str(user) not in listed

        self.await_that(waits, f"the runner after that of user {user}")

    def forget_keys(self) -> None:
        """Has the kernel forget keys of jobs' users: they belong to no machine, and outlive it."""
        self.shell(_FORGET_KEYS)

    def journal(self, *arguments: str) -> str:
        return self.run("journalctl", "--no-pager", "--lines=60", "--boot", *arguments).stdout

    def end(self) -> None:
        if self._is_on():
            self.cut_off()
        for folder, _, _ in os.walk(self._group(), topdown=False):
            Path(folder).rmdir()

    def _is_on(self) -> bool:
        return self._nspawn is not None and self._nspawn.poll() is None

    def _group(self) -> Path:
        """A control group of version 2 that is this machine's alone."""
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
        [place, *_] = [words[1] for words in mounts if words[2] == "cgroup2"]
        [own] = [line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")]
        group = Path(place) / own.lstrip("/") / f"ldos-lab-{os.getpid()}-{id(self):x}"
        group.mkdir(exist_ok=True)
        return group

    def _first_process(self) -> int | None:
        assert self._nspawn is not None
        below = [self._nspawn.pid]
        for pid in below:
            try:
                if Path(f"/proc/{pid}/comm").read_text() == "systemd\n":
                    return pid
                below += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
            except (FileNotFoundError, ProcessLookupError):
                continue
        return None


@contextmanager
def lab_machine(folder: Path, lower: list[Path]) -> Iterator[LabMachine]:
    """A machine over some layers, not booted yet; whatever comes, it is ended."""
    with overlay(folder / "upper", lower, folder / "root") as root:
        machine = LabMachine(root)
        try:
            yield machine
        finally:
            machine.end()
