"""The environment that other tools live in, because one of them pins numpy."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PACKAGES: Final = ("apache-otava==0.8.0", "asv==0.6.6")
_LIMIT_S: Final = 150


@dataclass(frozen=True)
class Peers:
    """Paths of the tools, or the reason why they are missing.

    Attributes:
        python: of their environment; ``None`` where there is none.
        reason: why.
    """

    python: Path | None
    reason: str = ""


def peers_environment(folder: Path) -> Peers:
    """Made on the first call, then kept below the folder."""
    place = folder / "peers"
    python, ready = place / "bin" / "python", place / ".ready"
    wanted = " ".join(PACKAGES)
    if ready.exists() and ready.read_text() == wanted:
        return Peers(python)
    try:
        _run([sys.executable, "-m", "venv", "--clear", str(place)])
        _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES])
    except (OSError, subprocess.SubprocessError) as error:
        return Peers(None, _describe(error))
    ready.write_text(wanted)
    return Peers(python)


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, timeout=_LIMIT_S, capture_output=True, text=True)


def _describe(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        lines = [line for line in str(error.stderr).splitlines() if line.strip()]
        return f"it could not be installed: {lines[-1] if lines else error}"
    return f"it could not be installed: {error}"
