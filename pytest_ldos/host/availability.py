"""Checks of programs and modules on this machine, with remedies."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ldos.base.errors import Unavailable


@dataclass(frozen=True)
class Availability:
    """Availability of a feature.

    Attributes:
        reason: reason why it is not available; empty if `ok`.
        remedy: how to make it available.
    """

    ok: bool
    reason: str = ""
    remedy: str = ""

    def demand(self) -> None:
        """Raises `Unavailable` with reason and remedy unless `ok`."""
        if not self.ok:
            raise Unavailable(self.reason, remedy=self.remedy)


def find_programs(names: Sequence[str], *, package: str) -> Availability:
    """Looks for programs on `PATH`; `package` is their package in Debian and Ubuntu."""
    missing = [name for name in names if shutil.which(name) is None]
    if not missing:
        return Availability(True)
    return Availability(False, f"{', '.join(missing)} not found", f"sudo apt-get install {package}")


def program_version(name: str, command: str, option: str = "--version") -> str:
    """``perf 6.1.187``; the name alone if the command's output has no version."""
    done = subprocess.run([command, option], capture_output=True, encoding="utf-8", errors="replace", check=False)
    found = re.search(r"\d+(\.\d+)+", done.stdout)
    return f"{name} {found.group()}" if found else name


def find_modules(names: Sequence[str], *, extra: str) -> Availability:
    """Looks for importable Python modules without importing them."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if not missing:
        return Availability(True)
    return Availability(
        False, f"Python package {', '.join(missing)} not installed", f"pip install 'pytest-ldos[{extra}]'"
    )
