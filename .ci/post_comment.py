"""Posts a report as the one comment of its kind on a pull request: the one made before is written anew.

The report is a file that was made of checked numbers (``ldos comment``) where no token was. Here it is only text: it is
sent as JSON, and never becomes part of a command or an address. Only Python's standard library is needed.

Usage: post_comment.py FILE --repository OWNER/NAME (--pull-request N | --commit SHA --ref REF) [--author LOGIN]

Environment: GITHUB_TOKEN (may write to pull requests), GITHUB_API_URL.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

MARK: Final = "<!-- pytest-ldos report -->"
_LARGEST_COMMENT: Final = 65_536
_LARGEST_ANSWER: Final = 32 * 1024 * 1024
_TIMEOUT_S: Final = 30.0
_PER_PAGE: Final = 100
_MOST_PAGES: Final = 100

_REPOSITORY: Final = re.compile(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_QUEUED: Final = re.compile(r"refs/heads/gh-readonly-queue/.+/pr-([1-9][0-9]{0,9})-[0-9a-f]{40}")
_API: Final = re.compile(r"https://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9./-]*)?|http://127\.0\.0\.1:[0-9]+")


class Failed(Exception):
    """The comment could not be posted; its text says why."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token is sent to the server that was named, and to no other."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        return None


@dataclass(frozen=True)
class Api:
    """GitHub's API for one repository.

    Attributes:
        url: where it is.
        repository: ``OWNER/NAME``.
        token: that allows to write to its pull requests.
    """

    url: str
    repository: str
    token: str

    def ask(self, method: str, place: str, body: Mapping[str, Any] | None = None) -> Any:
        """The answer, decoded.

        Raises:
            Failed: there is none, or it is no JSON; names the place and the status.
        """
        request = urllib.request.Request(
            f"{self.url}/repos/{self.repository}/{place}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Accept": "application/vnd.github+json",
                "Authorization": f"Bearer {self.token}",
                "Content-Type": "application/json",
                "User-Agent": "pytest-ldos",
                "X-GitHub-Api-Version": "2022-11-28",
            },
        )
        where = f"{method} {place}"
        try:
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=_TIMEOUT_S) as answer:
                content = answer.read(_LARGEST_ANSWER + 1)
        except urllib.error.HTTPError as error:
            error.close()
            raise Failed(f"{where}: GitHub answers {error.code}") from None
        except (OSError, http.client.HTTPException) as error:
            raise Failed(f"{where}: no answer ({type(error).__name__})") from None
        return _decode(content, where)

    def pages(self, place: str) -> Iterator[Mapping[str, Any]]:
        """All objects of a list that comes in pages."""
        for number in range(1, _MOST_PAGES + 1):
            found = self.ask("GET", f"{place}?per_page={_PER_PAGE}&page={number}")
            if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
                raise Failed(f"GET {place}: the answer is no list of objects")
            yield from found
            if len(found) < _PER_PAGE:
                return
        raise Failed(f"GET {place}: more than {_MOST_PAGES} pages")


def _decode(content: bytes, where: str) -> Any:
    if len(content) > _LARGEST_ANSWER:
        raise Failed(f"{where}: the answer is too large")
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise Failed(f"{where}: the answer is no JSON") from None


def read_report(file: Path) -> str:
    """The comment's text.

    Raises:
        Failed: the file is no report, or too long for a comment.
    """
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failed(f"{file} cannot be read: {type(error).__name__}") from None
    if not text.startswith(f"{MARK}\n") or text.count(MARK) != 1:
        raise Failed(f"{file} does not begin with {MARK}, or has it twice")
    if len(text) > _LARGEST_COMMENT:
        raise Failed(f"{file} has more than {_LARGEST_COMMENT} characters")
    return text


def find_pull_request(api: Api, commit: str, ref: str) -> int | None:
    """The pull request that a run was for: the queue's first, or the one that has the commit; ``None`` without one."""
    queued = _QUEUED.fullmatch(ref)
    if queued is not None:
        return int(queued.group(1))
    found = [each for each in api.pages(f"commits/{commit}/pulls") if type(each.get("number")) is int]
    open_ones = [each for each in found if each.get("state") == "open"]
    numbers = [each["number"] for each in open_ones or found]
    return max(numbers, default=None)


def post(api: Api, pull_request: int, text: str, *, author: str) -> str:
    """Writes the comment anew, or for the first time; says which."""
    for comment in api.pages(f"issues/{pull_request}/comments"):
        if _is_ours(comment, author):
            api.ask("PATCH", f"issues/comments/{comment['id']}", {"body": text})
            return f"comment {comment['id']} of pull request {pull_request} was written anew"
    api.ask("POST", f"issues/{pull_request}/comments", {"body": text})
    return f"pull request {pull_request} got a comment"


def _is_ours(comment: Mapping[str, Any], author: str) -> bool:
    """Anybody can write the mark; only what we wrote is ours."""
    user, body = comment.get("user"), comment.get("body")
    if not isinstance(user, dict) or user.get("login") != author or type(comment.get("id")) is not int:
        return False
    return isinstance(body, str) and body.startswith(MARK)


def main() -> int:
    """Entry point; 1 where the comment could not be posted."""
    arguments = _parse_arguments()
    try:
        sys.stdout.write(f"{_post_as_asked(arguments)}\n")
    except Failed as failed:
        sys.stderr.write(f"post_comment: {failed}\n")
        return 1
    return 0


def _post_as_asked(arguments: argparse.Namespace) -> str:
    text = read_report(arguments.file)
    token, url = os.environ.get("GITHUB_TOKEN", ""), os.environ.get("GITHUB_API_URL", "https://api.github.com")
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise Failed("GITHUB_TOKEN is not set to a token")
    if _API.fullmatch(url) is None:
        raise Failed("GITHUB_API_URL is no address of an API")
    api = Api(url, arguments.repository, token)
    number = arguments.pull_request or find_pull_request(api, arguments.commit, arguments.ref)
    if number is None:
        return f"no pull request has the commit {arguments.commit}: nothing to comment on"
    return post(api, number, text, author=arguments.author)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="post_comment", description="Posts a report on a pull request.")
    parser.add_argument("file", type=Path, help="the report, as `ldos comment` wrote it")
    parser.add_argument("--repository", required=True, help="OWNER/NAME")
    parser.add_argument("--pull-request", type=int, default=0, help="its number; else it is found")
    parser.add_argument("--commit", default="", help="by the commit that was measured")
    parser.add_argument("--ref", default="", help="or by the branch of a merge queue")
    parser.add_argument("--author", default="github-actions[bot]", help="who writes with this token")
    arguments = parser.parse_args()
    _require(parser, _REPOSITORY.fullmatch(arguments.repository), "--repository is not OWNER/NAME")
    has_commit = _COMMIT.fullmatch(arguments.commit)
    _require(parser, arguments.pull_request > 0 or has_commit, "--pull-request or --commit (40 digits) is needed")
    return arguments


def _require(parser: argparse.ArgumentParser, condition: object, message: str) -> None:
    return None if condition else parser.error(message)


if __name__ == "__main__":
    sys.exit(main())
