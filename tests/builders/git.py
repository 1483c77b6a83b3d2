"""Git in a folder, as somebody without a name of their own."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(folder: Path, *arguments: str) -> str:
    """Runs a command; returns what it prints.

    Raises:
        CalledProcessError: it failed.
    """
    setting = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    return subprocess.run(["git", *setting, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout
