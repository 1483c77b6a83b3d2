"""GitHub's API on the loopback device: comments, what Git keeps, and starts of workflows; its workflows open no pull requests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.fakes.git_data import GitData
from tests.fakes.loopback import serving

BOT = "github-actions[bot]"
TOKEN = "ghs_secret0123456789"


@dataclass
class FakeGitHub:
    """What it holds, what it was asked, and how it fails.

    Attributes:
        comments: of the one pull request, in the order in which they were made.
        pulls: that have a commit.
        git: branches and what they are at.
        started: workflows, with what each was given.
        asked: method and path of each request.
        failures: status by method, or by method and beginning of the place; or a body that is no JSON.
    """

    comments: list[dict[str, Any]] = field(default_factory=list)
    pulls: list[dict[str, Any]] = field(default_factory=list)
    git: GitData = field(default_factory=GitData)
    started: list[tuple[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    failures: dict[str, Any] = field(default_factory=dict)
    url: str = ""

    def add(self, body: str, login: str | None = BOT) -> int:
        number = 100 + len(self.comments)
        self.comments.append({"id": number, "body": body, "user": None if login is None else {"login": login}})
        return number

    def body_of(self, number: int) -> str:
        return next(str(each["body"]) for each in self.comments if each["id"] == number)

    def answer(self, method: str, path: str, query: Mapping[str, list[str]], body: Any) -> tuple[int, Any]:
        place = path.removeprefix("/repos/arm-makers/arm/")
        if place.startswith("git/"):
            return self.git.answer(method, place.removeprefix("git/"), body)
        if place.startswith("actions/workflows/"):
            self.started.append((place.split("/")[2], body))
            return 204, None
        if "comments" in place:
            return self._answer_about_comments(method, path, query, body)
        if method == "GET" and place.endswith("/pulls"):
            return 200, _page(self.pulls, query)
        # "GitHub Actions is not permitted to create or approve pull requests."
        return 403, {"message": "not permitted"}

    def _answer_about_comments(
        self, method: str, path: str, query: Mapping[str, list[str]], body: Any
    ) -> tuple[int, Any]:
        if method == "GET":
            return 200, _page(self.comments, query)
        if method == "POST":
            return 201, {"id": self.add(body["body"])}
        found = next(each for each in self.comments if each["id"] == int(path.rpartition("/")[2]))
        found["body"] = body["body"]
        return 200, found


def _page(found: list[dict[str, Any]], query: Mapping[str, list[str]]) -> list[dict[str, Any]]:
    size, page = int(query["per_page"][0]), int(query["page"][0])
    return found[size * (page - 1) : size * page]


@contextmanager
def running(github: FakeGitHub) -> Iterator[FakeGitHub]:
    """Serves it until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            address = urlsplit(self.path)
            github.asked.append(f"{self.command} {address.path}")
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")
            status, content = self._answer(address.path, parse_qs(address.query), body)
            self.send_response(status)
            if status == 302:
                self.send_header("Location", f"{github.url}/elsewhere")
            if status == 204:
                content = b""
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _answer(self, path: str, query: Mapping[str, list[str]], body: Any) -> tuple[int, bytes]:
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                return 401, b"{}"
            place = path.removeprefix("/repos/arm-makers/arm/")
            failed = (
                self.command,
                *(where for where in github.failures if f"{self.command} {place}".startswith(where)),
            )
            failure = next((github.failures[where] for where in failed if where in github.failures), None)
            if isinstance(failure, int):
                return failure, b'{"message": "no"}'
            if failure is not None:
                return 200, failure
            status, answer = github.answer(self.command, unquote(path), query, body)
            return status, json.dumps(answer).encode()

        do_GET = do_POST = do_PATCH = _serve  # noqa: N815 - the names that the library looks for

        def log_message(self, *arguments: object) -> None:
            """Nothing."""

    with serving(Handler) as github.url:
        yield github
