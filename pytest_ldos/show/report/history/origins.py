"""Origins of a history's commits: their subjects, their pull requests, and the addresses of both."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pytest_ldos.host.checkout import ABBREVIATION
from pytest_ldos.judge.baseline.history.commits import CommitPoint
from pytest_ldos.show.page.model import Link

_COMMIT: Final = re.compile(rf"[0-9a-f]{{{ABBREVIATION},40}}")
_OF_SUBJECT: Final = re.compile(r"\(#([1-9]\d{0,8})\)\Z|\AMerge pull request #([1-9]\d{0,8}) ", re.ASCII)
"""A pull request that was squashed, or merged."""

_OF_BRANCH: Final = re.compile(r"gh-readonly-queue/.+/pr-([1-9]\d{0,8})-[0-9a-f]+()", re.ASCII)
"""A merge queue's branch."""


@dataclass(frozen=True)
class Origins:
    """Commits as their repository knows them.

    Attributes:
        url: address of the repository's pages; without it there are no links.
        subjects: of commits, by their abbreviations.

    Raises:
        ConfigurationError: `url` is no address.
    """

    url: str = ""
    subjects: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.url:
            object.__setattr__(self, "url", Link("", self.url.rstrip("/")).url)

    def subject(self, commit: str) -> str:
        """The commit's first line; empty where it is not known."""
        return self.subjects.get(commit[:ABBREVIATION], "") if _COMMIT.fullmatch(commit) else ""

    def commit_url(self, commit: str) -> str:
        """The address of a commit; empty where it has none."""
        return f"{self.url}/commit/{commit}" if self.url and _COMMIT.fullmatch(commit) else ""

    def pull_request(self, point: CommitPoint) -> Link | None:
        """The pull request that brought a commit, as its subject or the branch of its merge queue names it."""
        of_subject = _OF_SUBJECT.search(self.subject(point.commit))
        found = (of_subject, *(_OF_BRANCH.fullmatch(run.branch) for run in point.runs))
        number = next((match[1] or match[2] for match in found if match), "")
        return Link(f"#{number}", f"{self.url}/pull/{number}") if number and self.url else None
