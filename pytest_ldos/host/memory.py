"""Memory that a program may still use."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import psutil

_OURS: Final = Path("/proc/self/cgroup")
_GROUPS: Final = Path("/sys/fs/cgroup")


def available_bytes() -> int:
    """Memory of this machine that is free or can be freed, within the limits of our control group."""
    return min((psutil.virtual_memory().available, *_left_in_groups()))


def _left_in_groups() -> list[int]:
    """Bytes left below the limit of each group above this process (cgroup v2); empty where there is none."""
    try:
        lines = _OURS.read_text("ascii").splitlines()
    except OSError:
        return []
    name = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), None)
    if name is None:
        return []
    own = _GROUPS / name
    folders = [own, *own.parents][: len(Path(name).parts) + 1]
    return [left for folder in folders if (left := _left(folder)) is not None]


def _left(folder: Path) -> int | None:
    try:
        limit, used = (int((folder / name).read_text("ascii")) for name in ("memory.max", "memory.current"))
        cached = dict(line.split() for line in (folder / "memory.stat").read_text("ascii").splitlines())
    except (OSError, ValueError):  # no limit is "max", which is no number
        return None
    return max(limit - used + int(cached.get("inactive_file", 0)), 0)
