"""Room for LTTng-UST's buffers in shared memory: with too little, nothing is recorded and no tool reports it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import NotWritten
from pytest_ldos.base.units import format_bytes

PLACE: Final = Path("/dev/shm")  # noqa: S108 - where the C library keeps shared memory
_POSSIBLE_CPUS: Final = Path("/sys/devices/system/cpu/possible")
_METADATA_BYTES: Final = 1 << 20
_SIZES: Final = {"k": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def require_room_for_buffers(size: str, count: int, *, place: Path = PLACE, cpus: Path = _POSSIBLE_CPUS) -> None:
    """Demands room for a channel's buffers: one per possible CPU, with an additional sub-buffer for the reader.

    Args:
        size: of a sub-buffer, as LTTng takes it: ``1M``.
        count: of sub-buffers.

    Raises:
        NotWritten: there is too little.
    """
    needed = possible_cpus(cpus) * (count + 1) * _bytes_of(size) + _METADATA_BYTES
    try:
        free = shutil.disk_usage(place).free
    except FileNotFoundError:
        raise NotWritten(
            f"there is no {place}, where the tracer has its buffers",
            remedy=f"sudo mkdir {place} && sudo mount -t tmpfs tmpfs {place}",
        ) from None
    if free < needed:
        raise NotWritten(
            f"the tracer's buffers do not fit into {place}: {format_bytes(needed)} are needed, "
            f"and {format_bytes(free)} are free",
            remedy=f"remove what nobody uses there (ldos doctor), or sudo mount -o remount,size=1G {place} "
            "(a container: --shm-size=1g)",
        )


def possible_cpus(file: Path = _POSSIBLE_CPUS) -> int:
    """CPUs as LTTng counts them: one more than the last of ``0-3`` or ``0,2-5``; those there are without ``/sys``."""
    try:
        return int(file.read_text("ascii").strip().replace("-", ",").split(",")[-1]) + 1
    except FileNotFoundError:
        return os.sysconf("SC_NPROCESSORS_CONF")


def _bytes_of(size: str) -> int:
    return int(size[:-1]) * _SIZES[size[-1]] if size[-1] in _SIZES else int(size)
