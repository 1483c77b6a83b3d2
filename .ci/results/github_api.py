"""GitHub's API for one repository: JSON goes out, JSON comes back. Only Python's standard library is needed."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any, Final

_LARGEST_ANSWER: Final = 160 * 1024 * 1024
_LONGEST_TEXT: Final = 65_536
_TIMEOUT_S: Final = 60.0
_PER_PAGE: Final = 100
_MOST_PAGES: Final = 100
_NOT_FOUND: Final = 404
_FORBIDDEN: Final = 403
_TOO_MANY: Final = 429
_SERVER_FAULTS: Final = range(500, 600)
PAUSES_S: Final = (2.0, 10.0, 30.0)
"""Before each further attempt where GitHub is in trouble, or has had too many requests."""

_LONGEST_PAUSE_S: Final = 120.0

BOT: Final = "github-actions[bot]"
"""Login of a workflow's token, which everyone who may push a workflow can use."""

REPOSITORY: Final = re.compile(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+")
COMMIT: Final = re.compile(r"[0-9a-f]{40}")
BRANCH: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(?:[./][A-Za-z0-9_-]+)*")
_RIGHTS: Final = re.compile(r"[a-z_=,; ]{1,200}")
_API: Final = re.compile(r"https://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9./-]*)?|http://127\.0\.0\.1:[0-9]+")


class Failed(Exception):
    """A request could not be carried out; the text is the reason."""


class NotFound(Failed):
    """GitHub has no such thing."""


class _Busy(Failed):
    """GitHub may answer later.

    Attributes:
        pause_s: after which it asks to be asked again; 0 where it does not say.
    """

    def __init__(self, text: str, pause_s: float = 0.0) -> None:
        super().__init__(text)
        self.pause_s = pause_s


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
        token: that has the rights which are needed, and no others.
    """

    url: str
    repository: str
    token: str

    @classmethod
    def from_environment(cls, repository: str) -> Api:
        """With GITHUB_TOKEN and GITHUB_API_URL.

        Raises:
            Failed: one of them is not what it should be.
        """
        token, url = os.environ.get("GITHUB_TOKEN", ""), os.environ.get("GITHUB_API_URL", "https://api.github.com")
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise Failed("GITHUB_TOKEN is not set to a token")
        if _API.fullmatch(url) is None:
            raise Failed("GITHUB_API_URL is no address of an API")
        return cls(url, repository, token)

    def ask(self, method: str, place: str, body: Mapping[str, Any] | None = None) -> Any:
        """The answer, decoded; ``None`` where it is empty.

        Raises:
            NotFound: there is no such thing.
            Failed: there is no answer after several attempts, or it is no JSON; names the place and the status, and
                the right that a token lacks.
        """
        where = f"{method} {place}"
        for pause_s in PAUSES_S:
            try:
                return self._ask_once(method, place, body, where)
            except _Busy as busy:
                time.sleep(min(max(pause_s, busy.pause_s), _LONGEST_PAUSE_S))
        return self._ask_once(method, place, body, where)

    def _ask_once(self, method: str, place: str, body: Mapping[str, Any] | None, where: str) -> Any:
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
        try:
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=_TIMEOUT_S) as answer:
                status, content = answer.status, answer.read(_LARGEST_ANSWER + 1)
        except urllib.error.HTTPError as error:
            error.close()
            raise _refusal(where, error.code, error.headers) from None
        except (OSError, http.client.HTTPException) as error:
            raise _Busy(f"{where}: no answer ({type(error).__name__})") from None
        return None if status == http.HTTPStatus.NO_CONTENT else _decode(content, where)

    def pages(self, place: str, **query: str) -> Iterator[Mapping[str, Any]]:
        """All objects of a list that comes in pages."""
        for number in range(1, _MOST_PAGES + 1):
            asked = urllib.parse.urlencode({**query, "per_page": _PER_PAGE, "page": number})
            found = self.ask("GET", f"{place}?{asked}")
            if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
                raise Failed(f"GET {place}: the answer is no list of objects")
            yield from found
            if len(found) < _PER_PAGE:
                return
        raise Failed(f"GET {place}: more than {_MOST_PAGES} pages")


def _refusal(where: str, status: int, headers: Message) -> Failed:
    """Converts an error response."""
    printed = f"{where}: GitHub answers {status}"
    if status == _NOT_FOUND:
        return NotFound(printed)
    is_limit = status == _TOO_MANY or headers.get("X-RateLimit-Remaining") == "0" or "Retry-After" in headers
    if status in _SERVER_FAULTS or is_limit:
        pause = headers.get("Retry-After", "")
        return _Busy(f"{printed}, also after {len(PAUSES_S)} more attempts", float(pause) if pause.isdecimal() else 0.0)
    right = headers.get("X-Accepted-GitHub-Permissions", "")
    if status == _FORBIDDEN and _RIGHTS.fullmatch(right):
        return Failed(f"{printed}: the job's token needs the right {right.replace('=', ': ')}")
    return Failed(printed)


def _decode(content: bytes, where: str) -> Any:
    if len(content) > _LARGEST_ANSWER:
        raise Failed(f"{where}: the answer is too large")
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise Failed(f"{where}: the answer is no JSON") from None


def parse_commit(text: str) -> str:
    """The name of a commit on a command line, whole.

    Raises:
        ArgumentTypeError: it is none.
    """
    if COMMIT.fullmatch(text) is None:
        raise argparse.ArgumentTypeError("a commit has 40 hexadecimal digits")
    return text


def at(answer: Any, *keys: str) -> Any:
    """The value at a path of keys in a response; ``None`` if there is none."""
    for key in keys:
        answer = answer.get(key) if isinstance(answer, dict) else None
    return answer


def commit_in(answer: Any, *keys: str) -> str:
    """The name of an object of Git's in an answer.

    Raises:
        Failed: there is none.
    """
    found = at(answer, *keys)
    if not isinstance(found, str) or COMMIT.fullmatch(found) is None:
        raise Failed(f"GitHub's answer has no {'.'.join(keys)} of 40 hexadecimal digits")
    return found


def read_file(file: os.PathLike[str], most: int) -> str:
    """The text of a file that a job without rights has made.

    Raises:
        Failed: it cannot be read, or has more than `most` characters.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, encoding="utf-8") as stream:
            text = stream.read(most + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise Failed(f"{os.fspath(file)} cannot be read: {type(error).__name__}") from None
    if len(text) > most:
        raise Failed(f"{os.fspath(file)} has more than {most} characters")
    return text


def read_text(file: os.PathLike[str], mark: str) -> str:
    """A text that a job without rights has made, for people to read on GitHub.

    Raises:
        Failed: it does not begin with its mark, or is too long.
    """
    text = read_file(file, _LONGEST_TEXT)
    if not text.startswith(f"{mark}\n") or text.count(mark) != 1:
        raise Failed(f"{os.fspath(file)} does not begin with {mark}, or has it twice")
    return text
