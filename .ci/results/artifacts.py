"""Artifacts of machines, each in a folder of the artifact's name. No file in it can name another machine.

The job that receives uploads an artifact of its own, KIND-none, before it downloads all. An artifact that is alone is
unpacked without a folder of its name (actions/download-artifact 5 and later), so that its files could be any machine's.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from folders import read_folder
from github_api import Failed
from labels import FORM

_OWN: Final = "none"


def find_artifact(received: Path, kind: str, label: str) -> Path | None:
    """The folder of a machine's artifact; ``None`` where no machine's came."""
    return received / f"{kind}-{label}" if _came_apart(received, kind) else None


def label_of(path: str, kind: str) -> str:
    """The machine whose artifact a file was in, by its path below what was received."""
    return path.partition("/")[0].removeprefix(f"{kind}-")


def read_artifacts(received: Path, kind: str, form: str, *, most: int, largest: int) -> dict[str, bytes]:
    """The content of all files of all machines, by their paths below what was received.

    Args:
        form: of every path in an artifact; another one is refused.
        most: files.
        largest: bytes of all of them.

    Raises:
        Failed: something else is there, too much, or nothing.
    """
    if not _came_apart(received, kind):
        raise Failed(f"no machine left an artifact {kind}-LABEL")
    own = f"{kind}-{_OWN}/{_OWN}.txt"
    expected = re.compile(rf"{re.escape(own)}|{kind}-(?:{FORM.pattern})/(?:{form})")
    files = read_folder(received, expected, most=most, largest=largest)
    files.pop(own, None)
    if not files:
        raise Failed(f"no machine left an artifact {kind}-LABEL")
    return files


def _came_apart(received: Path, kind: str) -> bool:
    return (received / f"{kind}-{_OWN}").is_dir()
