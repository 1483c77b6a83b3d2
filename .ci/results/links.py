"""Addresses in a report: only those below the repository; of what a machine of the lab says, artifacts of it alone."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Final

_LONGEST: Final = 300
_ARTIFACT: Final = r"actions/runs/[0-9]{1,20}/artifacts/[0-9]{1,20}"
_PLAIN: Final = r"[A-Za-z0-9._~/?=&%#-]*"


def read_artifact_link(file: Path) -> str:
    """The address in a file that a machine of the lab has written; empty where there is none that can be shown."""
    try:
        with file.open("rb") as stream:
            url = stream.read(_LONGEST + 1).decode("ascii").removesuffix("\n")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError):
        url = "?"
    return _own(url, _ARTIFACT)


def own_link(url: str) -> str:
    """An address that the CI system has given; empty where it leads out of the repository."""
    return _own(url, _PLAIN)


def _own(url: str, form: str) -> str:
    server = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
    repository = os.environ.get("GITHUB_REPOSITORY", "")
    home = f"{server}/{repository}/"
    if not url or (repository and home.startswith("https://") and re.fullmatch(re.escape(home) + form, url)):
        return url
    sys.stderr.write(f"render: an address was left out: only those below {home!a} are shown, and by https\n")
    return ""
