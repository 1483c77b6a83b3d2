"""New baselines as a branch that a pull request can be opened for: files that a job without rights has checked."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

from branches import head_of, move, tree_of, write_commit, write_tree
from folders import read_folder
from github_api import Api, Failed, read_text
from surroundings import append_to, server

MARK: Final = "<!-- pytest-ldos baselines -->"
BRANCHES: Final = "baselines/"
TEXT: Final = "pull_request.md"
FILE: Final = re.compile(r"baselines/[a-z0-9]{1,32}/[a-z0-9][a-z0-9_-]{0,199}/[A-Za-z0-9][A-Za-z0-9_+-]{0,99}\.json")
"""``<stack>/<host class>/<scenario>.json``: no second dot, so neither what is pinned nor what was calibrated."""

_MOST: Final = 200
_LARGEST: Final = 64 * 1024 * 1024


def propose(api: Api, folder: Path, *, commit: str, base: str) -> str:
    """Brings the branch of a commit's baselines up to date; says in the job's summary how its pull request is opened.

    A workflow that may open pull requests may also approve them: no workflow of ours can.

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
    link = link_of(api.repository, branch, base, f"Baselines of {commit[:12]}")
    title = f"Baselines of {commit}"
    changed = commit_files(api, {f"baselines/{path}": files[path] for path in files}, branch, base, title)
    if not changed:
        return f"{base} has these baselines already: nothing to propose"
    append_to("GITHUB_STEP_SUMMARY", f"**[Open a pull request for these baselines]({link})**\n\n{text}")
    return f"the branch {branch} has them; open its pull request here, unless there is one: {link}"


_LIMITS: Final[dict[str, int]] = {"most": _MOST, "largest": _LARGEST}


def _require_nothing_else(folder: Path) -> None:
    others = sorted({each.name for each in folder.iterdir()} - {TEXT, "baselines"})
    if others:
        raise Failed(f"{folder} holds {ascii(others[0])[:200]}, which belongs to nothing that is taken")


def commit_files(api: Api, files: Mapping[str, bytes], branch: str, base: str, title: str) -> bool:
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
        made = write_commit(api, tree, title, parents=[start])
        move(api, branch, made, is_new=not there)
    return bool(there) or tree != before


def link_of(repository: str, branch: str, base: str, title: str) -> str:
    """Address of the form for a pull request, with a title, and a text that leads to what the machines recorded."""
    home = f"{server()}/{repository}"
    run = os.environ.get("GITHUB_RUN_ID", "")
    shown = f"Old next to new: {home}/actions/runs/{run}" if run.isascii() and run.isdigit() else ""
    query = urlencode({"quick_pull": "1", "title": title, "body": shown})
    return f"{home}/compare/{quote(base)}...{quote(branch)}?{query}"
