"""A report as the one comment of its kind on a pull request: the one made before is written again.

The report is a file that was made of checked numbers where no token was. Here it is only text: it is sent as JSON, and
never becomes part of a command or an address.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from github_api import Api
from pull_requests import parse_queued

MARK: Final = "<!-- pytest-ldos report -->"


def find_pull_request(api: Api, commit: str, ref: str) -> int | None:
    """The pull request that a run was for: the queue's first, or the one that has the commit; ``None`` without one."""
    queued = parse_queued(ref)
    if queued is not None:
        return queued.number
    found = [each for each in api.pages(f"commits/{commit}/pulls") if type(each.get("number")) is int]
    open_ones = [each for each in found if each.get("state") == "open"]
    numbers = [each["number"] for each in open_ones or found]
    return max(numbers, default=None)


def post(api: Api, pull_request: int, text: str, *, author: str) -> str:
    """Writes the comment again, or for the first time; says which."""
    for comment in api.pages(f"issues/{pull_request}/comments"):
        if _is_ours(comment, author):
            api.ask("PATCH", f"issues/comments/{comment['id']}", {"body": text})
            return f"comment {comment['id']} of pull request {pull_request} was written again"
    api.ask("POST", f"issues/{pull_request}/comments", {"body": text})
    return f"pull request {pull_request} got a comment"


def _is_ours(comment: Mapping[str, Any], author: str) -> bool:
    """Anybody can write the mark; only what we wrote is ours."""
    user, body = comment.get("user"), comment.get("body")
    if not isinstance(user, dict) or user.get("login") != author or type(comment.get("id")) is not int:
        return False
    return isinstance(body, str) and body.startswith(MARK)
