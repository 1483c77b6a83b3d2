"""The tag of a major version, which is where its newest release is."""

from __future__ import annotations

import re
from typing import Final

from github_api import Api, Failed, NotFound

_RELEASE: Final = re.compile(r"(v(?:0|[1-9][0-9]*))\.[0-9]+\.[0-9]+")


def move(api: Api, release: str, commit: str) -> str:
    """Moves the major tag of a release to its commit, or makes it; returns what was done.

    Raises:
        Failed: `release` is no tag of a release; one with more behind it (v1.2.3rc1) moves nothing.
    """
    found = _RELEASE.fullmatch(release)
    if found is None:
        raise Failed("a release is called v1.2.3")
    major = found.group(1)
    try:
        api.ask("GET", f"git/ref/tags/{major}")
    except NotFound:
        api.ask("POST", "git/refs", {"ref": f"refs/tags/{major}", "sha": commit})
    else:
        api.ask("PATCH", f"git/refs/tags/{major}", {"sha": commit, "force": True})
    return f"{major} is at {commit}"
