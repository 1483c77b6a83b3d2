"""Git's answers about a folder: commit, changes, top of the checkout."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

ABBREVIATION: Final = 12
"""Characters of a commit that are shown and recorded."""

CHANGED: Final = "+"
"""Mark behind a commit whose checkout has uncommitted changes."""

UNSHALLOW: Final = "git fetch --unshallow (fetch-depth: 0 of actions/checkout)"
"""Remedy for a clone without the whole history."""

OF_ANOTHER_CHECKOUT: Final = (
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_WORK_TREE",
)
"""Variables of git hooks that make git look elsewhere than in the folder it is given."""


_DESCRIBE: Final = ("describe", "--always", f"--dirty={CHANGED}", f"--abbrev={ABBREVIATION}", "--exclude=*")
_FATAL: Final = "fatal: "
_SAYS_NOTHING: Final = "Needed a single revision"
"""Git's words on any revision that it cannot resolve."""


class GitWords(NamedTuple):
    """Git's own words on why it gave no answer, and its cure; each may be empty."""

    reason: str
    remedy: str = ""

    def __str__(self) -> str:
        return " → ".join(filter(None, self))


def is_changed(commit: str) -> bool:
    """True if a described commit had uncommitted changes."""
    return commit.endswith(CHANGED)


def describe_commit(folder: Path) -> str:
    """The checkout's commit, with `CHANGED` where it has uncommitted changes; empty outside of git."""
    return ask_git(folder, *_DESCRIBE) or ""


def commit_of(folder: Path) -> tuple[str, str]:
    """The checkout's commit (see `describe_commit`), and git's words on why there is none; one of them is empty."""
    commit = describe_commit(folder)
    return commit, "" if commit else str(why_no_commit(folder) or "")


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


def why_no_commit(folder: Path) -> GitWords | None:
    """Git's reason why `describe_commit` finds none; ``None`` where it finds one."""
    described = _run(folder, *_DESCRIBE)
    if not isinstance(described, GitWords):
        return None
    asked = _run(folder, "log", "--max-count=1", "--format=%H")  # has better words where there is no commit yet
    return asked if isinstance(asked, GitWords) else described


def is_shallow(folder: Path) -> bool:
    """True for a clone without the whole history."""
    return ask_git(folder, "rev-parse", "--is-shallow-repository") == "true"


def why_unknown(revision: str, folder: Path) -> GitWords:
    """Git's reason why it does not know a revision; without words where there is just no such name."""
    refused = why_no_commit(folder)
    if refused is not None:
        return refused
    if is_shallow(folder):
        return GitWords("this clone is shallow, and has no older commits", UNSHALLOW)
    asked = _run(folder, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    return asked if isinstance(asked, GitWords) and asked.reason != _SAYS_NOTHING else GitWords("")


def ask_git(folder: Path, *arguments: str) -> str | None:
    """Git's answer in a folder; ``None`` if it has none, or is not installed (`why_no_commit` has its words)."""
    answer = _run(folder, *arguments)
    return None if isinstance(answer, GitWords) else answer


def _run(folder: Path, *arguments: str) -> str | GitWords:
    """Git's answer, or its words on why it gives none: in English, so that they can be told apart."""
    environment = {name: value for name, value in os.environ.items() if name not in OF_ANOTHER_CHECKOUT}
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, env={**environment, "LC_ALL": "C"}, capture_output=True, check=False)
    except OSError as error:
        is_absent = isinstance(error, FileNotFoundError)
        return GitWords("git is not installed" if is_absent else f"git cannot be run: {error}", "install git")
    if done.returncode == 0:
        return os.fsdecode(done.stdout).strip()
    lines = [line.strip() for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    fatal = next((index for index, line in enumerate(lines) if line.startswith(_FATAL)), 0)
    reason, *cure = lines[fatal:] or [""]
    return GitWords(reason.removeprefix(_FATAL), " ".join(cure))
