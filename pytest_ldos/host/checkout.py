"""Git's answers about a folder: commit, changes, top of the checkout."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

ABBREVIATION: Final = 12
"""Characters of a commit that are shown and recorded."""

CHANGED: Final = "+"
"""Mark behind a commit whose checkout has uncommitted changes."""

OF_ANOTHER_CHECKOUT: Final = (
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_WORK_TREE",
)
"""Variables of git hooks that make git look elsewhere than in the folder it is given."""


def is_changed(commit: str) -> bool:
    """True if a described commit had uncommitted changes."""
    return commit.endswith(CHANGED)


def describe_commit(folder: Path) -> str:
    """The checkout's commit, with `CHANGED` where it has uncommitted changes; empty outside of git."""
    command = ("describe", "--always", f"--dirty={CHANGED}", f"--abbrev={ABBREVIATION}", "--exclude=*")
    return ask_git(folder, *command) or ""


def abbreviate(commit: str, folder: Path) -> str:
    """A commit as `describe_commit` shows it."""
    return ask_git(folder, "rev-parse", f"--short={ABBREVIATION}", commit) or commit


def top_of_checkout(folder: Path) -> Path | None:
    """The folder that holds the checkout; ``None`` outside of git."""
    top = ask_git(folder, "rev-parse", "--show-toplevel")
    return Path(top) if top else None


def read_subjects(folder: Path) -> dict[str, str]:
    """The first lines of the checkout's commits, by their first `ABBREVIATION` characters; none outside of git."""
    lines = (ask_git(folder, "log", "--no-show-signature", "--format=%H %s") or "").split("\n")
    return {commit[:ABBREVIATION]: subject for commit, _, subject in (line.partition(" ") for line in lines) if commit}


def ask_git(folder: Path, *arguments: str) -> str | None:
    """Git's answer in a folder; ``None`` if it has none, or is not installed."""
    environment = {name: value for name, value in os.environ.items() if name not in OF_ANOTHER_CHECKOUT}
    try:
        done = subprocess.run(["git", "-C", folder, *arguments], env=environment, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return os.fsdecode(done.stdout).strip()
