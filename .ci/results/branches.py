"""Branches of a repository through its API: no checkout, no remote, no shell, no file that Git would run.

Reference: GitHub's REST API, "Git database".
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

from github_api import Api, Failed, NotFound, at, commit_in

_LARGEST: Final = 100 * 1024 * 1024
_MOST_FILES: Final = 1000
_FILE: Final = "100644"
_REMEDY: Final = "take away what does not belong there, or delete its branch"


def head_of(api: Api, branch: str) -> str:
    """The commit that a branch is at; empty where there is no such branch."""
    try:
        return commit_in(api.ask("GET", f"git/ref/heads/{quote(branch)}"), "object", "sha")
    except NotFound:
        return ""


def tree_of(api: Api, commit: str) -> str:
    """The tree of a commit."""
    return commit_in(api.ask("GET", f"git/commits/{commit}"), "tree", "sha")


def write_tree(api: Api, files: Mapping[str, bytes], *, onto: str = "") -> str:
    """A tree of these files by their paths, added to another one or alone."""
    entries = [{"path": path, "mode": _FILE, "type": "blob", "sha": _write_blob(api, files[path])} for path in files]
    body = {"tree": entries, **({"base_tree": onto} if onto else {})}
    return commit_in(api.ask("POST", "git/trees", body), "sha")


def _write_blob(api: Api, content: bytes) -> str:
    body = {"encoding": "base64", "content": base64.b64encode(content).decode()}
    return commit_in(api.ask("POST", "git/blobs", body), "sha")


def write_commit(api: Api, tree: str, message: str, *, parents: Iterable[str]) -> str:
    """A commit that no branch is at yet."""
    body = {"message": message, "tree": tree, "parents": [*parents]}
    return commit_in(api.ask("POST", "git/commits", body), "sha")


def move(api: Api, branch: str, commit: str, *, is_new: bool, forced: bool = False) -> None:
    """Lets a branch be at a commit; without force only at one that comes after what it is at."""
    if is_new:
        api.ask("POST", "git/refs", {"ref": f"refs/heads/{branch}", "sha": commit})
    else:
        api.ask("PATCH", f"git/refs/heads/{quote(branch)}", {"sha": commit, "force": forced})


def read_files(api: Api, commit: str, wanted: re.Pattern[str]) -> dict[str, bytes]:
    """The files of a commit whose whole paths have a form.

    Raises:
        Failed: they are too many or too large.
    """
    entries = [each for each in list_tree(api, commit, _REMEDY) if _is_wanted(each, wanted)]
    if len(entries) > _MOST_FILES or sum(each["size"] for each in entries) > _LARGEST:
        raise Failed(f"the tree of {commit} has more than {_MOST_FILES} files or {_LARGEST} bytes: {_REMEDY}")
    return {each["path"]: read_blob(api, commit_in(each, "sha")) for each in entries}


def list_tree(api: Api, commit: str, remedy: str = "") -> list[Any]:
    """Everything in a commit, as GitHub describes it.

    Raises:
        Failed: it is too much.
    """
    answer = api.ask("GET", f"git/trees/{tree_of(api, commit)}?recursive=1")
    found = at(answer, "tree")
    if at(answer, "truncated") is not False or not isinstance(found, list):
        raise Failed(f"the tree of {commit} is too large to be listed{f': {remedy}' if remedy else ''}")
    return found


def _is_wanted(entry: Any, wanted: re.Pattern[str]) -> bool:
    path, size = at(entry, "path"), at(entry, "size")
    is_file = at(entry, "mode") == _FILE and isinstance(path, str) and type(size) is int
    return is_file and wanted.fullmatch(path) is not None


def read_blob(api: Api, name: str) -> bytes:
    answer = api.ask("GET", f"git/blobs/{name}")
    content = at(answer, "content")
    if at(answer, "encoding") != "base64" or not isinstance(content, str):
        raise Failed(f"the blob {name} is not in base64")
    try:
        return base64.b64decode(content.replace("\n", ""), validate=True)
    except (ValueError, binascii.Error):
        raise Failed(f"the blob {name} is not in base64") from None
