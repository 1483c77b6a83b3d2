"""Programs in separate namespaces, whose mounts and network interfaces are invisible outside and disappear at their end."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from functools import cache

import pytest


@cache
def why_no_namespaces(*kinds: str) -> str:
    """Reason why namespaces are not available; empty if they are."""
    if "net" in kinds and shutil.which("ip") is None:
        return "iproute2 is not installed"
    try:
        done = subprocess.run(
            ["unshare", *(f"--{kind}" for kind in kinds), "true"], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return "unshare is not installed"
    return done.stderr.strip()


def in_namespaces(script: str, command: Sequence[str], *, kinds: Sequence[str] = ("mount",)) -> list[str]:
    """Returns a command that runs a preparing shell script and a program in new namespaces; skips if there are none."""
    if reason := why_no_namespaces(*kinds):
        pytest.skip(f"no {' and '.join(kinds)} namespaces of one's own here: {reason}")
    return ["unshare", *(f"--{kind}" for kind in kinds), "sh", "-euc", f'{script}\nexec "$@"', "sh", *command]
