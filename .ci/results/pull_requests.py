"""Pull requests as GitHub's API and its events describe them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from github_api import Api, Failed, at, commit_in

_QUEUED: Final = re.compile(r"(?:refs/heads/)?gh-readonly-queue/(.+)/pr-([1-9][0-9]{0,9})-([0-9a-f]{40})")


@dataclass(frozen=True, kw_only=True)
class PullRequest:
    """A pull request.

    Attributes:
        head: commit that it is at.
        base: commit that its base branch was at when GitHub last looked.
        author: who opened it.
        is_open: false where it was merged or closed.
        is_own: true where its branch is in the repository itself.
    """

    number: int
    head: str
    base: str
    author: str
    is_open: bool
    is_own: bool


@dataclass(frozen=True)
class Queued:
    """A merge group by the name of its branch: of a queue's pull request, onto a base."""

    number: int
    base: str


def parse_queued(branch: str) -> Queued | None:
    """The merge group that a branch belongs to; ``None`` for any other branch."""
    found = _QUEUED.fullmatch(branch)
    return None if found is None else Queued(int(found.group(2)), found.group(3))


def parse_pull_request(answer: Any, repository: str) -> PullRequest:
    """A pull request in an event or an answer.

    Raises:
        Failed: it is none.
    """
    number = at(answer, "number")
    if type(number) is not int or number < 1:
        raise Failed("GitHub's answer is no pull request")
    return PullRequest(
        number=number,
        head=commit_in(answer, "head", "sha"),
        base=commit_in(answer, "base", "sha"),
        author=str(at(answer, "user", "login")),
        is_open=at(answer, "state") == "open",
        is_own=at(answer, "head", "repo", "full_name") == repository,
    )


def ask_pull_request(api: Api, number: int) -> PullRequest:
    """A pull request as it is now."""
    return parse_pull_request(api.ask("GET", f"pulls/{number}"), api.repository)


def open_ones(api: Api, commit: str = "") -> Iterator[PullRequest]:
    """The open pull requests; of one commit, those whose head it is. GitHub lists none of a fork by its commit."""
    for answer in api.pages("pulls", state="open"):
        if commit in ("", at(answer, "head", "sha")):
            yield parse_pull_request(answer, api.repository)


def merge_base(api: Api, pull_request: PullRequest) -> str:
    """The merge base of a pull request: later changes of its base branch are not attributed to it."""
    answer = api.ask("GET", f"compare/{pull_request.base}...{pull_request.head}")
    return commit_in(answer, "merge_base_commit", "sha")


def contradiction(api: Api, commit: str, base: str) -> str:
    """The reason why one status cannot apply to a commit (another open pull request with another base); else empty."""
    others = {merge_base(api, each) for each in open_ones(api, commit)} - {base}
    return f"another pull request of this commit has base {min(others)[:12]}: close one of the two" if others else ""
