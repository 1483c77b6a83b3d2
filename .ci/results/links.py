"""Addresses that a machine of the lab gives: those of artifacts of this repository, and no others."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Final

_LONGEST: Final = 300
_RUN_OR_ARTIFACT: Final = r"actions/runs/[0-9]{1,20}(?:/artifacts/[0-9]{1,20})?"


def home() -> str:
    """Where the repository's pages are."""
    server = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
    return f"{server}/{os.environ['GITHUB_REPOSITORY']}/"


def read_link(file: Path) -> str:
    """The address in a file that a machine of the lab has written; empty where there is none that can be shown."""
    try:
        with file.open("rb") as stream:
            url = stream.read(_LONGEST + 1).decode("ascii").removesuffix("\n")
    except (OSError, UnicodeDecodeError):
        return ""
    return own_link(url)


def own_link(url: str) -> str:
    """An address of a run of this repository or of an artifact of one; any other is left out, and that is said."""
    if not url or re.fullmatch(re.escape(home()) + _RUN_OR_ARTIFACT, url):
        return url
    sys.stderr.write(f"render: an address that is no run or artifact below {home()!a} was left out\n")
    return ""
