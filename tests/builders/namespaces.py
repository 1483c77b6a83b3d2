"""Programs that run in namespaces of their own: nothing that is mounted or plugged in there is seen outside, or stays."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from functools import cache

import pytest


@cache
def why_not_apart(*kinds: str) -> str:
    """Why this machine gives no such namespaces; empty where it does."""
    if "net" in kinds and shutil.which("ip") is None:
        return "iproute2 is not installed"
    try:
        done = subprocess.run(
            ["unshare", *(f"--{kind}" for kind in kinds), "true"], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return "unshare is not installed"
    return done.stderr.strip()


def apart(script: str, command: Sequence[str], *, kinds: Sequence[str] = ("mount",)) -> list[str]:
    """A command in namespaces of its own, behind a shell script that prepares them; skips where there are none."""
    if reason := why_not_apart(*kinds):
        pytest.skip(f"no {' and '.join(kinds)} namespaces of one's own here: {reason}")
    return ["unshare", *(f"--{kind}" for kind in kinds), "sh", "-euc", f'{script}\nexec "$@"', "sh", *command]
