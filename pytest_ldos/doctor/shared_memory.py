"""Checks of shared memory, through which Fast DDS sends messages: its room, and files left behind."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pytest_ldos.doctor.finding import Finding, ok, warning
from pytest_ldos.doctor.machine import Machine
from pytest_ldos.doctor.removal import RemoveStale
from pytest_ldos.host.fastdds_memory import find_stale

ENOUGH_BYTES: Final = 128 << 20
"""Room for a MoveIt stack: some twenty participants with a segment of half a megabyte and ports each, and floods.
A container has 64 MiB by default."""

_PLACE: Final = "dev/shm"


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
    """Files of Fast DDS that no process uses: this user's, or everybody's for root."""
    return find_stale(machine.path(_PLACE))
