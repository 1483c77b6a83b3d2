"""Check of the disk for traces: that it can be written, and its space."""

from __future__ import annotations

import os.path
import shutil
import tempfile
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.writable import writing
from pytest_ldos.doctor.finding import Finding, error, ok, warning
from pytest_ldos.doctor.machine import Machine

NEEDED_BYTES: Final = 1 << 30
"""Half of the limit for traces (``--ldos-traces-limit-mb``): with less, a run may not finish."""

ENOUGH_BYTES: Final = 5 << 30
"""The limit and the traces of one run, which are written before the oldest are deleted."""


def check_disk(machine: Machine, *, needed: int = NEEDED_BYTES, enough: int = ENOUGH_BYTES) -> Finding:
    folder = _existing(machine.output)
    elsewhere = "name another place: --ldos-output"
    try:
        with writing(machine.output, otherwise=elsewhere), tempfile.TemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free
    except LdosError as refused:
        return error("disk", refused.message, refused.remedy)
    text = f"{free / (1 << 30):.1f} GiB free for results in {machine.output}"
    remedy = f"delete old traces (.ldos/runs), or {elsewhere}"
    if free < needed:
        return error("disk", text, remedy)
    return warning("disk", text, remedy) if free < enough else ok("disk", text)


def _existing(place: Path) -> Path:
    """The place, or what is there of the way to it."""
    return next(each for each in (place.absolute(), *place.absolute().parents) if os.path.exists(each))  # noqa: PTH110 - a folder that may not be entered is no error here
