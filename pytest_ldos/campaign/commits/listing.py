"""Commits from a good one to a bad one, along the first parents of the bad one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.campaign.versions.version import Revision, find_revision
from pytest_ldos.host.checkout import (
    UNSHALLOW,
    abbreviate,
    ask_git,
    describe_commit,
    is_changed,
    is_shallow,
    top_of_checkout,
    why_unknown,
)

_FORM: Final = "%H%x00%cs%x00%P%x00%s"
"""Commit, date, parents and subject."""


@dataclass(frozen=True)
class Commit:
    """A commit of the project.

    Attributes:
        name: abbreviated, as in records.
        date: of the commit, ISO 8601.
        is_merge: True if it has several parents.
    """

    name: str
    date: str
    subject: str
    is_merge: bool = False

    def __str__(self) -> str:
        return f"{self.name} {self.date} {self.subject}"


def list_commits(good: str, bad: str, root: Path) -> tuple[Commit, ...]:
    """The commits to search, GOOD first and BAD last.

    A merge stands for all commits of the branch that it merged.

    Raises:
        ConfigurationError: a revision is unknown, GOOD is BAD or no ancestor of it, or there are uncommitted changes.
    """
    first, last = (_revision(text, what, root) for text, what in ((good, "GOOD"), (bad, "BAD")))
    if is_changed(describe_commit(root)):
        raise ConfigurationError(
            "the work tree has uncommitted changes, which belong to no commit",
            remedy="commit or stash them: settings come from the work tree, and sources from each commit",
        )
    if first.commit == last.commit:
        raise ConfigurationError(f"GOOD and BAD are the same commit, {first.commit}", remedy="name two commits")
    if ask_git(root, "merge-base", "--is-ancestor", first.commit, last.commit) is None:
        raise _not_between(first, last, root)
    after = ask_git(root, "log", "--first-parent", "--reverse", f"--format={_FORM}", f"{first.commit}..{last.commit}")
    itself = ask_git(root, "log", "--max-count=1", f"--format={_FORM}", first.commit)
    return tuple(_parse(line, root) for line in f"{itself}\n{after}".splitlines())


def _revision(text: str, what: str, root: Path) -> Revision:
    found = find_revision(text, root)
    if found is not None:
        return found
    words = why_unknown(text, root)
    if top_of_checkout(root) is None:
        raise ConfigurationError(
            f"git knows no revision in {root.resolve()}: {words.reason}",
            remedy=words.remedy or "run it in the project's checkout",
        )
    raise ConfigurationError(
        f"{what} {text}: there is no revision of this name{f': {words.reason}' if words.reason else ''}",
        remedy=words.remedy
        or "name a commit, tag or branch that `git rev-parse` knows here (git fetch may be missing)",
    )


def _not_between(first: Revision, last: Revision, root: Path) -> ConfigurationError:
    is_reversed = ask_git(root, "merge-base", "--is-ancestor", last.commit, first.commit) is not None
    fork = ask_git(root, "merge-base", first.commit, last.commit)
    remedy = "name a GOOD that BAD descends from"
    if is_reversed:
        remedy = "it is a descendant: exchange the two"
    elif fork:
        remedy = f"their last common ancestor is {abbreviate(fork, root)}: name it as GOOD"
    elif is_shallow(root):
        remedy = f"this clone is shallow, and may lack what connects them: {UNSHALLOW}"
    return ConfigurationError(f"GOOD {first.text} is no ancestor of BAD {last.text}", remedy=remedy)


def _parse(line: str, root: Path) -> Commit:
    commit, date, parents, subject = line.split("\0")
    return Commit(abbreviate(commit, root), date, subject, is_merge=len(parents.split()) > 1)
