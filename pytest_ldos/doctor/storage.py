"""Check of the disk space for traces."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from pytest_ldos.doctor.finding import Finding, error, ok, warning
from pytest_ldos.doctor.machine import Machine

NEEDED_BYTES: Final = 1 << 30
"""Half of the limit for traces (``--ldos-traces-limit-mb``): with less, a run may not finish."""

ENOUGH_BYTES: Final = 5 << 30
"""The limit and the traces of one run, which are written before the oldest are deleted."""


def check_disk(machine: Machine, *, needed: int = NEEDED_BYTES, enough: int = ENOUGH_BYTES) -> Finding:
    folder = _existing(machine.output)
    free = shutil.disk_usage(folder).free
    text = f"{free / (1 << 30):.1f} GiB free for results in {machine.output}"
    remedy = "delete old traces (.ldos/runs), or name another place: --ldos-output"
    if free < needed:
        return error("disk", text, remedy)
    return warning("disk", text, remedy) if free < enough else ok("disk", text)


def _existing(folder: Path) -> Path:
    folder = folder.absolute()
    return next(each for each in (folder, *folder.parents) if each.is_dir())
