"""Shared memory, which Fast DDS sends messages through.

Reference: Fast DDS 2.14: a segment ``fastrtps_ID`` or port ``fastrtps_portN`` in ``/dev/shm`` is in use
while somebody holds a lock on its file ``…_el`` (one owner) or ``…_sl`` (several).
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from pytest_ldos.doctor.finding import Finding, ok, warning
from pytest_ldos.doctor.machine import Machine
from pytest_ldos.doctor.removal import RemoveStale

ENOUGH_BYTES: Final = 128 << 20
"""For a MoveIt stack: some twenty participants with a segment of half a megabyte and ports each, and floods.
A container has 64 MiB unless it is told."""

_PLACE: Final = "dev/shm"
_LOCK: Final = re.compile(r"(fast(?:rtps|dds)_(?:port\d{1,5}|[0-9a-z]{16}))_[es]l")


def check_shared_memory(machine: Machine, *, enough: int = ENOUGH_BYTES) -> Finding:
    path = machine.path(_PLACE)
    if not path.is_dir():
        return warning("shared memory", f"{path} is missing: Fast DDS falls back to UDP", f"mount a tmpfs on {path}")
    usage = shutil.disk_usage(path)
    text = f"{usage.free >> 20} of {usage.total >> 20} MiB free"
    if usage.free >= enough:
        return ok("shared memory", text)
    remedy = "remove what is stale, or sudo mount -o remount,size=1G /dev/shm (a container: --shm-size=1g)"
    return warning("shared memory", f"{text}: too little for Fast DDS", remedy)


def check_stale_segments(machine: Machine) -> Finding:
    stale = find_stale_segments(machine)
    if not stale:
        return ok("Fast DDS leftovers", "none")
    size = sum(path.stat().st_size for path in stale if path.exists()) / 1e6
    text = f"{len(stale)} files of processes that are gone ({size:.1f} MB in {machine.path(_PLACE)})"
    fix = RemoveStale(f"remove {len(stale)} files of Fast DDS that nobody uses", stale, find_stale_segments)
    return warning("Fast DDS leftovers", text, "fastdds shm clean", fix)


def find_stale_segments(machine: Machine) -> Sequence[Path]:
    """Files of segments and ports whose lock nobody holds; of this user, or of all for root."""
    folder = machine.path(_PLACE)
    found = (_LOCK.fullmatch(path.name) for path in sorted(folder.glob("fast*_[es]l")))
    names = [(match.group(), match.group(1)) for match in found if match]
    in_use = {name for lock, name in names if _is_held(folder / lock)}
    return sorted({path for _, name in names if name not in in_use for path in _files_of(folder, name)})


def _files_of(folder: Path, name: str) -> Iterator[Path]:
    for each in (name, f"{name}_el", f"{name}_sl", f"sem.{name}_mutex"):
        if (folder / each).is_file():
            yield folder / each


def _is_held(lock: Path) -> bool:
    """Whether a process holds a lock on a file; one that we may not try counts as held."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
