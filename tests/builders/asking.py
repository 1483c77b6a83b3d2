"""Events by which somebody asks for a measurement, as GitHub sends them: of pull requests, comments, and by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.fakes.github_api import REPOSITORY

MAINTAINER: Final = "maintainer"
STRANGER: Final = "stranger"
REPOSITORY_OF_EVENTS: Final = {
    "full_name": REPOSITORY,
    "name": REPOSITORY.partition("/")[2],
    "id": 4711,
    "default_branch": "main",
    "owner": {"login": REPOSITORY.partition("/")[0]},
}


def pull_request(action: str, found: Mapping[str, Any], *, sender: str = MAINTAINER, **more: Any) -> dict[str, Any]:
    """Something became of a pull request."""
    payload = {"action": action, "number": found["number"], "pull_request": found, **more}
    return {**payload, "repository": REPOSITORY_OF_EVENTS, "sender": {"login": sender}}


def labeled(found: Mapping[str, Any], label: str = "ldos", *, sender: str = MAINTAINER) -> dict[str, Any]:
    """Somebody gave it a label."""
    return pull_request("labeled", found, sender=sender, label={"name": label})


def comment(
    found: Mapping[str, Any], body: str, *, sender: str = MAINTAINER, action: str = "created"
) -> dict[str, Any]:
    """Somebody wrote below it: the event has no commit."""
    return {
        "action": action,
        "issue": {
            "number": found["number"],
            "state": found["state"],
            "pull_request": {"url": "https://api.github.com/x"},
        },
        "comment": {"id": 1, "body": body, "user": {"login": sender}},
        "repository": REPOSITORY_OF_EVENTS,
        "sender": {"login": sender},
    }


def by_hand(commit: str, *, sender: str = MAINTAINER, **inputs: str) -> dict[str, Any]:
    """Somebody started it."""
    given = {"sha": commit, **inputs}
    return {"inputs": given, "ref": "refs/heads/main", "repository": REPOSITORY_OF_EVENTS, "sender": {"login": sender}}


def after(
    commit: str,
    branch: str,
    event: str,
    *,
    action: str = "completed",
    conclusion: str = "success",
    of: str = REPOSITORY,
) -> dict[str, Any]:
    """A run of the gate began, or ended; `of` is the repository whose branch it ran for."""
    found: dict[str, Any] = {"id": 2, "name": "Gate", "event": event, "head_branch": branch, "head_sha": commit}
    run = {**found, "conclusion": conclusion, "head_repository": {"full_name": of}}
    return {"action": action, "workflow_run": run, "repository": REPOSITORY_OF_EVENTS, "sender": {"login": MAINTAINER}}
