"""Variables of a CI system: files that jobs add to, and the server that people look at."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from github_api import Failed

_SERVER: Final = re.compile(r"https://[A-Za-z0-9.-]+(?::[0-9]+)?")


def append_to(variable: str, text: str) -> None:
    """Adds text to the file that a variable names; nothing where there is none."""
    name = os.environ.get(variable)
    if name:
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(text)


def server() -> str:
    """Address of GitHub's pages.

    Raises:
        Failed: GITHUB_SERVER_URL is none.
    """
    url = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
    if _SERVER.fullmatch(url) is None:
        raise Failed("GITHUB_SERVER_URL is no address of a server")
    return url
