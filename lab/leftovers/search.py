"""Finds what jobs of the lab's runner left on this machine, by the numbers of their users, and ends what runs of it.

Prints one line a finding. Root's program, with the standard library and the machine's own `find`, `ss` and `systemctl`.

Reference: ``proc(5)``, ``sysvipc(7)``, ``keyrings(7)``; systemd's "Users, Groups, UIDs and GIDs".
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

USERS: Final = range(400_000, 500_000)
"""Numbers of jobs' users and groups; ``runner-prepare`` gives each out once."""

_ACCOUNT: Final = "ldos-job-"
_LINGER: Final = "var/lib/systemd/linger"
_STORES: Final = {"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "overlay", "tmpfs", "mqueue", "hugetlbfs"}
"""File systems that keep files of this machine; on others, such as a network's, a job can write nothing."""

_MOST_FILES: Final = 100
_PATIENCE_S: Final = 5.0


def list_leftovers(root: Path) -> Iterator[str]:
    """Everything of jobs' users: processes, files, shared memory, queues, keys, sockets, and what would start some."""
    yield from (f"process {pid}: {_name(root, pid)}" for pid in _processes(root))
    yield from _files(root)
    yield from _shared_memory(root)
    yield from _keys(root)
    yield from _sockets()
    yield from (f"login of user {user}" for user in _logins(root))
    yield from (f"lingering user {_shown(name)}" for name in _lingering(root))


def end_leftovers(root: Path) -> None:
    """Kills all processes of jobs' users, and takes back that the machine starts any for them."""
    for name in _lingering(root):
        (root / _LINGER / name).unlink(missing_ok=True)
    for user in _users_of_processes(root) | {*_logins(root)}:
        subprocess.run(["systemctl", "stop", f"user@{user}.service", f"user-{user}.slice"], check=False)
    for user in _users_of_processes(root):
        _kill_all(user)
    _await_none(lambda: _processes(root) + _logins(root))


def _processes(root: Path) -> list[int]:
    """Those with a number of a job's as any of their users or groups, in whichever namespace."""
    found = []
    for status in (root / "proc").glob("[0-9]*/status"):
        numbers = re.findall(r"^(?:Uid|Gid):(.*)$", _read(status), re.MULTILINE)
        if any(int(number) in USERS for line in numbers for number in line.split()):
            found.append(int(status.parent.name))
    return sorted(found)


def _users_of_processes(root: Path) -> set[int]:
    statuses = [_read(root / f"proc/{pid}/status") for pid in _processes(root)]
    return {int(user) for status in statuses for user in re.findall(r"^Uid:\t(\d+)", status, re.MULTILINE)} & {*USERS}


def _kill_all(user: int) -> None:
    """Kills all processes of a user at once, which none can fork away from.

    Raises:
        OSError: the calling user may not become that user.
    """
    if (child := os.fork()) == 0:
        status = 1
        try:
            os.setresuid(user, user, user)
            status = 0
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    if ended:
        raise OSError(f"no rights of user {user} can be had to end its processes")


def _files(root: Path) -> Iterator[str]:
    """Files on all disks and in memory; at most so many are named."""
    mounts = _mounts(root)
    places = [str(root / mount.lstrip("/")) for mount, kind in mounts.items() if kind in _STORES]
    numbers = [word for flag in ("-uid", "-gid") for word in ("-o", flag, f"+{USERS[0] - 1}", flag, f"-{USERS.stop}")]
    search = ["find", *places, "-xdev", "-ignore_readdir_race", "(", *numbers[1:], ")", "-print0"]
    done = subprocess.run(search, capture_output=True, env={**os.environ, "LC_ALL": "C"}, check=False)
    found = sorted({*done.stdout.split(b"\0")} - {b""})
    yield from (f"file {_shown(os.fsdecode(name))}" for name in found[:_MOST_FILES])
    if len(found) > _MOST_FILES:
        yield f"{len(found) - _MOST_FILES} more files"
    # The top of another file system may be closed even to root.
    tops = [f"'{root / mount.lstrip('/')}'" for mount in mounts]
    for line in done.stderr.decode(errors="replace").splitlines():
        if not any(top in line for top in tops):
            yield f"a place that cannot be looked at: {_shown(line)}"


def _mounts(root: Path) -> dict[str, str]:
    """Kind of file system by place, of each file system one place."""
    found: dict[str, tuple[str, str]] = {}
    for line in _read(root / "proc/self/mountinfo").splitlines():
        words, kind = line.split(" - ")[0].split(), line.split(" - ")[1].split()[0]
        place = re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), words[4])
        is_whole = words[3] == "/"
        if is_whole or words[2] not in found:
            found[words[2]] = (place, kind)
    if not found:
        raise OSError("/proc/self/mountinfo lists no mounted file system")
    return dict(found.values())


def _shared_memory(root: Path) -> Iterator[str]:
    for kind, number in (("shm", "shmid"), ("sem", "semid"), ("msg", "msqid")):
        head, *lines = _read(root / f"proc/sysvipc/{kind}").splitlines() or [""]
        for line in lines:
            entry = dict(zip(head.split(), line.split(), strict=False))
            if owners := {int(entry[name]) for name in ("uid", "gid", "cuid", "cgid")} & {*USERS}:
                yield f"System V {kind} {entry[number]} of user {min(owners)}"


def _keys(root: Path) -> Iterator[str]:
    """Users who have keys; the kernel forgets those of ended processes a moment later."""

    def holders() -> list[int]:
        named = re.findall(r"^ *(\d+):", _read(root / "proc/key-users"), re.MULTILINE)
        return [int(user) for user in named if int(user) in USERS]

    yield from (f"keys of user {user}" for user in _await_none(holders))


def _sockets() -> Iterator[str]:
    """Sockets of the network that are jobs' users' and that something holds."""
    listed = subprocess.run(["ss", "-Haentu"], capture_output=True, text=True, errors="replace", check=True)
    for line in listed.stdout.splitlines():
        user = re.search(r" uid:(\d+)", line)
        if user is not None and int(user[1]) in USERS:
            yield f"socket {_shown(' '.join(line.split()))}"


def _logins(root: Path) -> list[int]:
    """Users with a session, or a manager of their own."""
    return [int(entry) for entry in _entries(root / "run/systemd/users") if entry.isdecimal() and int(entry) in USERS]


def _lingering(root: Path) -> list[str]:
    """Users for whom a manager is started at every boot, without a login."""
    return [entry for entry in _entries(root / _LINGER) if entry.startswith(_ACCOUNT)]


def _await_none(find: Callable[[], Sequence[int]]) -> Sequence[int]:
    """Finds until nothing is found any more, for some seconds."""
    deadline = time.monotonic() + _PATIENCE_S
    while (found := find()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def _entries(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []


def _name(root: Path, pid: int) -> str:
    return _shown(_read(root / f"proc/{pid}/comm").strip())


def _read(file: Path) -> str:
    """Content of a file of the kernel; empty if its process has ended, or the kernel has no such file."""
    try:
        return file.read_text("utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _shown(text: str) -> str:
    """Foreign text as ASCII that a terminal only shows."""
    return ascii(text)[1:-1][:300]


def run(arguments: Sequence[str]) -> int:
    """Entry point.

    Returns:
        Exit code: 0, or 1 if the search failed, with the reason as the last line.
    """
    parser = argparse.ArgumentParser(prog="leftovers", description=__doc__.partition("\n")[0])
    parser.add_argument("--end", action="store_true", help="end what runs instead of listing what is there")
    parser.add_argument("root", type=Path, help="folder of the machine's files")
    given = parser.parse_args(arguments)
    try:
        if given.end:
            end_leftovers(given.root)
        else:
            sys.stdout.writelines(f"{line}\n" for line in list_leftovers(given.root))
    except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        sys.stdout.write(f"{type(error).__name__}: {_shown(str(error))}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
