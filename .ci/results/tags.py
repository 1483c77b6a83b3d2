"""The tag of a major version, which is where its newest release is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from github_api import Api, Failed, NotFound, at

_RELEASE: Final = re.compile(r"(v(?:0|[1-9][0-9]*))\.([0-9]+)\.([0-9]+)")


def move(api: Api, release: str, commit: str) -> str:
    """Moves the major tag of a release to its commit, or makes it, unless a newer one is out; returns what was done.

    Raises:
        Failed: `release` is no tag of a release; one with more behind it (v1.2.3rc1) moves nothing.
    """
    found = _RELEASE.fullmatch(release)
    if found is None:
        raise Failed("a release is called v1.2.3")
    major = found.group(1)
    if newer := max((each for each in _releases(api, major) if each > _number(found)), default=None):
        return f"{major} stays at {major}.{newer[0]}.{newer[1]}, which is newer"
    try:
        api.ask("GET", f"git/ref/tags/{major}")
    except NotFound:
        api.ask("POST", "git/refs", {"ref": f"refs/tags/{major}", "sha": commit})
    else:
        api.ask("PATCH", f"git/refs/tags/{major}", {"sha": commit, "force": True})
    return f"{major} is at {commit}"


def _releases(api: Api, major: str) -> Iterator[tuple[int, int]]:
    """Numbers of the releases of a major version."""
    for each in api.ask("GET", f"git/matching-refs/tags/{major}."):
        found = _RELEASE.fullmatch(str(at(each, "ref")).removeprefix("refs/tags/"))
        if found is not None:
            yield _number(found)


def _number(found: re.Match[str]) -> tuple[int, int]:
    return int(found.group(2)), int(found.group(3))
