"""New baselines as a pull request: files that a job without rights has checked, and the text that it made of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from branches import head_of, move, tree_of, write_commit, write_tree
from folders import read_folder
from github_api import Api, Failed, at, number_in, read_text

MARK: Final = "<!-- pytest-ldos baselines -->"
BRANCHES: Final = "baselines/"
TEXT: Final = "pull_request.md"
FILE: Final = re.compile(r"baselines/[a-z0-9]{1,32}/[a-z0-9][a-z0-9_-]{0,199}/[A-Za-z0-9][A-Za-z0-9_+-]{0,99}\.json")
"""``<stack>/<host class>/<scenario>.json``: no second dot, so neither what is pinned nor what was calibrated."""

_MOST: Final = 200
_LARGEST: Final = 64 * 1024 * 1024


def propose(api: Api, folder: Path, *, commit: str, base: str) -> str:
    """Opens a pull request for the baselines of a commit, or brings the one that is open up to date; says which.

    Args:
        folder: holds ``baselines/`` and ``pull_request.md``.
        commit: that was measured.
        base: branch that is to get them.

    Raises:
        Failed: the folder holds anything else, or GitHub refuses.
    """
    text = read_text(folder / TEXT, MARK)
    files = read_folder(folder / "baselines", re.compile(FILE.pattern.removeprefix("baselines/")), **_LIMITS)
    _require_nothing_else(folder)
    branch = f"{BRANCHES}{commit}"
    changed = _commit(api, {f"baselines/{path}": files[path] for path in files}, branch, base, commit)
    if not changed:
        return f"{base} has these baselines already: nothing to propose"
    return _open(api, branch, base, {"title": f"Baselines of {commit[:12]}", "body": text})


_ALLOW: Final = (
    "Open it by hand, or let workflows do so (Settings, Actions, General: allow GitHub Actions to create pull requests)"
)
_LIMITS: Final[dict[str, int]] = {"most": _MOST, "largest": _LARGEST}


def _require_nothing_else(folder: Path) -> None:
    others = sorted({each.name for each in folder.iterdir()} - {TEXT, "baselines"})
    if others:
        raise Failed(f"{folder} holds {ascii(others[0])[:200]}, which belongs to nothing that is taken")


def _commit(api: Api, files: Mapping[str, bytes], branch: str, base: str, commit: str) -> bool:
    """Adds the files to the branch, or to a new one; whether it then differs from where it began.

    What somebody has added to the branch stays: a commit comes after it, and nothing is forced.
    """
    there = head_of(api, branch)
    start = there or head_of(api, base)
    if not start:
        raise Failed(f"there is no branch {base}")
    before = tree_of(api, start)
    tree = write_tree(api, files, onto=before)
    if tree != before:
        made = write_commit(api, tree, f"Baselines of {commit}", parents=[start])
        move(api, branch, made, is_new=not there)
    return bool(there) or tree != before


def _open(api: Api, branch: str, base: str, content: Mapping[str, Any]) -> str:
    for found in api.pages("pulls", state="open", head=f"{api.owner}:{branch}", base=base):
        if at(found, "head", "ref") == branch and at(found, "head", "repo", "full_name") == api.repository:
            number = number_in(found, "number")
            api.ask("PATCH", f"pulls/{number}", content)
            return f"pull request {number} was brought up to date"
    try:
        made = api.ask("POST", "pulls", {**content, "head": branch, "base": base, "maintainer_can_modify": False})
    except Failed as failed:
        raise Failed(f"{failed}; the branch {branch} is there. {_ALLOW}") from None
    return f"pull request {number_in(made, 'number')} was opened"
