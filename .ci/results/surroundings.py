"""Variables of a CI system: files that jobs add to, and the server that people look at."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Final

from github_api import Failed

_SERVER: Final = re.compile(r"https://[A-Za-z0-9.-]+(?::[0-9]+)?")


def append_to(variable: str, text: str) -> None:
    """Adds text to the file that a variable names; nothing where there is none."""
    name = os.environ.get(variable)
    if name:
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(text)


def read_event() -> tuple[str, dict[str, Any]]:
    """Name and payload of the event that started the job.

    Raises:
        Failed: there is none, or it cannot be read.
    """
    name, file = (os.environ.get(each, "") for each in ("GITHUB_EVENT_NAME", "GITHUB_EVENT_PATH"))
    try:
        payload = json.loads(Path(file).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise Failed(f"the event cannot be read: {type(error).__name__}") from None
    if not isinstance(payload, dict):
        raise Failed("the event is no object")
    return name, payload


def server() -> str:
    """Address of GitHub's pages.

    Raises:
        Failed: GITHUB_SERVER_URL is none.
    """
    url = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
    if _SERVER.fullmatch(url) is None:
        raise Failed("GITHUB_SERVER_URL is no address of a server")
    return url


def run_url(run: str = "") -> str:
    """The page of a run of workflows, this one's by default; empty outside of one."""
    number, repository = run or os.environ.get("GITHUB_RUN_ID", ""), os.environ.get("GITHUB_REPOSITORY", "")
    return f"{server()}/{repository}/actions/runs/{number}" if number.isdecimal() and repository else ""
