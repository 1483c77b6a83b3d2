"""GitHub's API on the loopback device: pull requests, issues, comments, statuses, artifacts, what Git keeps, starts of workflows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from typing import Any, Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tests.fakes.git_data import GitData
from tests.fakes.loopback import serving

BOT = "github-actions[bot]"
TOKEN = "ghs_secret0123456789"
REPOSITORY: Final = "arm-makers/arm"
FORK: Final = "stranger/arm"
_BLOBS: Final = "/blobs/"
_ZIP: Final = re.compile(r"/actions/artifacts/([0-9]+)/zip$")
_PULLS_OF: Final = re.compile(r"commits/([0-9a-f]{40})/pulls")
_STATUSES_OF: Final = re.compile(r"commits/([0-9a-f]{40})/statuses")
_COMPARED: Final = re.compile(r"compare/([0-9a-f]{40})\.\.\.([0-9a-f]{40})")
_ISSUE: Final = re.compile(r"issues/([0-9]+)")
_FIRST_ISSUE: Final = 1000


@dataclass
class FakeGitHub:
    """State, requests and failures of the fake server.

    Attributes:
        comments: of the one pull request and of issues, in the order in which they were made.
        issues: in the order in which they were made; GitHub lists pull requests among them.
        pulls: pull requests; those without a commit have every one.
        git: branches and what they are at.
        statuses: of each commit, the oldest first.
        merge_bases: of pairs of commits; of others, the first of the pair.
        parents: of commits that are listed and compared, each with its parents; the newest first.
        trees: of commits that `git` does not hold.
        revisions: commits by name or first digits.
        artifacts: of other runs, by their names.
        started: workflows, with what each was given.
        asked: method and path of each request.
        failures: status by method, or by method and beginning of the place; or a body that is no JSON; or several
            statuses, one a request, 0 for an answer.
        headers: of answers that are failures.
    """

    comments: list[dict[str, Any]] = field(default_factory=list)
    issues: list[dict[str, Any]] = field(default_factory=list)
    pulls: list[dict[str, Any]] = field(default_factory=list)
    git: GitData = field(default_factory=GitData)
    statuses: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    merge_bases: dict[tuple[str, str], str] = field(default_factory=dict)
    parents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    trees: dict[str, str] = field(default_factory=dict)
    revisions: dict[str, str] = field(default_factory=dict)
    artifacts: dict[str, bytes] = field(default_factory=dict)
    started: list[tuple[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    failures: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    url: str = ""

    def add(self, body: str, login: str | None = BOT) -> int:
        number = 100 + len(self.comments)
        made_at = f"2026-01-01T00:{number // 60:02d}:{number % 60:02d}Z"
        user = None if login is None else {"login": login}
        self.comments.append({"id": number, "body": body, "user": user, "created_at": made_at, "updated_at": made_at})
        return number

    def body_of(self, number: int) -> str:
        return next(str(each["body"]) for each in self.comments if each["id"] == number)

    def open(
        self, number: int, head: str, base: str, *, fork: bool = False, author: str = "maintainer"
    ) -> dict[str, Any]:
        """Opens a pull request, or one again; returns it as events and answers have it."""
        where = {"full_name": FORK, "id": 666} if fork else {"full_name": REPOSITORY, "id": 4711}
        made = {
            "number": number,
            "state": "open",
            "user": {"login": author},
            "head": {"sha": head, "ref": "topic", "repo": where},
            "base": {"sha": base, "ref": "main", "repo": {"full_name": REPOSITORY, "id": 4711}},
        }
        self.pulls = [each for each in self.pulls if each.get("number") != number] + [made]
        return made

    def add_issue(self, body: str, login: str = BOT, **more: Any) -> dict[str, Any]:
        """Opens an issue as somebody."""
        made = {"title": "", "state": "open", "closed_at": None, "updated_at": _now(), "body": body, **more}
        self.issues.append({"number": _FIRST_ISSUE + len(self.issues), "user": {"login": login}, **made})
        return self.issues[-1]

    def close_issue(self, issue: dict[str, Any], at: datetime | None = None) -> None:
        """Closes an issue, as its page does."""
        issue.update(state="closed", closed_at=_now(at), updated_at=_now(at))

    def add_status(
        self, commit: str, state: str, description: str, *, login: str = BOT, at: datetime | None = None, run: str = ""
    ) -> None:
        """Writes a status of the context ``ldos`` as somebody."""
        body = {"state": state, "context": "ldos", "description": description}
        if run:
            body["target_url"] = f"https://github.com/{REPOSITORY}/actions/runs/{run}"
        self._keep_status(commit, body, login, at or datetime.now(UTC))

    def shown(self, commit: str) -> dict[str, tuple[str, str]]:
        """The newest state and description of each context, as a page of GitHub's shows them."""
        return {each["context"]: (each["state"], each["description"]) for each in self.statuses.get(commit, ())}

    def answer(self, method: str, path: str, query: Mapping[str, list[str]], body: Any) -> tuple[int, Any]:
        place = path.removeprefix(f"/repos/{REPOSITORY}/")
        if place.startswith("git/"):
            return self._answer_about_git(method, place.removeprefix("git/"), body)
        if place.startswith("actions/workflows/"):
            self.started.append((place.split("/")[2], body))
            return 204, None
        if place.startswith("actions/runs/"):
            return 200, self._artifacts(query)
        if place.startswith("actions/artifacts/"):
            return 302, None
        if "comments" in place:
            return self._answer_about_comments(method, path, query, body)
        if place.partition("/")[0] == "issues":
            return self._answer_about_issues(method, place, query, body)
        if method == "POST" and place.startswith("statuses/"):
            self._keep_status(place.removeprefix("statuses/"), body, BOT, datetime.now(UTC))
            return 201, {}
        if method == "GET":
            return self._get(place, query)
        # "GitHub Actions is not permitted to create or approve pull requests."
        return 403, {"message": "not permitted"}

    def _get(self, place: str, query: Mapping[str, list[str]]) -> tuple[int, Any]:
        if found := _PULLS_OF.fullmatch(place):
            # None of a fork's, as GitHub does.
            has = (each for each in self.pulls if each["head"]["sha"] == found.group(1) and not _is_of_fork(each))
            return 200, _page([*has], query)
        if found := _STATUSES_OF.fullmatch(place):
            return 200, _page(self.statuses.get(found.group(1), [])[::-1], query)
        if found := _COMPARED.fullmatch(place):
            return self._compare(found.group(1), found.group(2))
        if place == "pulls":
            return 200, _page([each for each in self.pulls if each["state"] == "open"], query)
        if place.startswith("pulls/"):
            known = [each for each in self.pulls if str(each.get("number")) == place.removeprefix("pulls/")]
            return (200, known[0]) if known else (404, {"message": "Not Found"})
        if place == "commits" and self.parents:
            listed = [{"sha": each, "parents": [{"sha": p} for p in self.parents[each]]} for each in self.parents]
            return 200, _page(listed, query)
        if place == "commits":
            return 200, [{"sha": each} for each in [*self.git.branches.values()][:1]]
        name = place.removeprefix("commits/")
        commit = self.revisions.get(name) or self.git.branches.get(name) or (name if len(name) == 40 else "")
        return (200, {"sha": commit}) if commit else (404, {"message": "Not Found"})

    def _compare(self, base: str, head: str) -> tuple[int, Any]:
        if not self.parents:
            return 200, {"merge_base_commit": {"sha": self.merge_bases.get((base, head), base)}}
        if base not in self.parents:
            return 404, {"message": "Not Found"}
        new, old = (self._past(head) - self._past(base), self._past(base) - self._past(head))
        status = ("diverged" if old else "ahead") if new else ("behind" if old else "identical")
        return 200, {"status": status, "ahead_by": len(new), "behind_by": len(old)}

    def _past(self, commit: str) -> set[str]:
        """The commit and all before it."""
        found, wanted = set[str](), [commit]
        while wanted:
            if (each := wanted.pop()) not in found:
                found.add(each)
                wanted += self.parents.get(each, ())
        return found

    def _answer_about_issues(
        self, method: str, place: str, query: Mapping[str, list[str]], body: Any
    ) -> tuple[int, Any]:
        if method == "GET":
            state, since = query.get("state", ["open"])[0], query.get("since", [""])[0]
            shown = [each for each in self.issues if each["state"] == state and each["updated_at"] >= since]
            return 200, _page(shown[::-1], query)
        if method == "POST":
            return 201, self.add_issue(body["body"], title=body["title"])
        found = _ISSUE.fullmatch(place)
        issue = next((each for each in self.issues if found and each["number"] == int(found.group(1))), None)
        if issue is None:
            return 404, {"message": "Not Found"}
        issue.update(body, updated_at=_now())
        if issue["state"] == "closed":
            self.close_issue(issue)
        return 200, issue

    def _keep_status(self, commit: str, body: Mapping[str, Any], login: str, at: datetime) -> None:
        status = {**body, "creator": {"login": login}, "created_at": _now(at)}
        self.statuses.setdefault(commit, []).append(status)

    def _artifacts(self, query: Mapping[str, list[str]]) -> dict[str, Any]:
        """Artifacts of another run, as its list; each is fetched from its own address."""
        entries = [
            {"id": number, "name": name, "size_in_bytes": len(content), "expired": False, "workflow_run": {"id": 2}}
            for number, (name, content) in enumerate(self.artifacts.items(), 1)
        ]
        return {"total_count": len(entries), "artifacts": _page(entries, query)}

    def _answer_about_git(self, method: str, place: str, body: Any) -> tuple[int, Any]:
        commit = place.removeprefix("commits/")
        if method == "GET" and commit in self.trees:
            return 200, {"sha": commit, "tree": {"sha": self.trees[commit]}}
        return self.git.answer(method, place, body)

    def _answer_about_comments(
        self, method: str, path: str, query: Mapping[str, list[str]], body: Any
    ) -> tuple[int, Any]:
        if method == "GET":
            return 200, _page(self.comments, query)
        if method == "POST":
            return 201, {"id": self.add(body["body"])}
        found = next(each for each in self.comments if each["id"] == int(path.rpartition("/")[2]))
        found |= {"body": body["body"], "updated_at": "2026-02-01T00:00:00Z"}
        return 200, found

    def headers_of(self, status: int, path: str) -> dict[str, str]:
        """Further headers of a response, in addition to its length and type."""
        if status == 302:
            found = _ZIP.search(path)
            name = [*self.artifacts][int(found.group(1)) - 1] if found else ""
            return {"Location": f"{self.url}{_BLOBS}{quote(name, safe='')}" if found else f"{self.url}/elsewhere"}
        return self.headers if status >= 400 else {}

    def failure(self, method: str, place: str) -> Any:
        """Failure of a request; ``None`` if it succeeds."""
        for where in (method, *(each for each in self.failures if f"{method} {place}".startswith(each))):
            found = self.failures.get(where)
            if isinstance(found, list):
                found = found.pop(0) if found else 0
            if found not in (None, 0):
                return found
        return None


def _now(at: datetime | None = None) -> str:
    """A time, or the present one, as GitHub writes it."""
    return (at or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _is_of_fork(pull_request: Mapping[str, Any]) -> bool:
    return bool(pull_request["head"]["repo"]["full_name"] != REPOSITORY)


def _page(found: list[dict[str, Any]], query: Mapping[str, list[str]]) -> list[dict[str, Any]]:
    size, page = int(query["per_page"][0]), int(query.get("page", ["1"])[0])
    return found[size * (page - 1) : size * page]


@contextmanager
def running(github: FakeGitHub) -> Iterator[FakeGitHub]:
    """Serves it until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            address = urlsplit(self.path)
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")
            if address.path.startswith(_BLOBS):
                content = github.artifacts[unquote(address.path.removeprefix(_BLOBS))]
                self._send(200, content, {"Content-Type": "application/zip"})
                return
            github.asked.append(f"{self.command} {address.path}")
            status, content = self._answer(address.path, parse_qs(address.query), body)
            self._send(status, content, {"Content-Type": "application/json", **github.headers_of(status, address.path)})

        def _send(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
            content = b"" if status == 204 else content
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def _answer(self, path: str, query: Mapping[str, list[str]], body: Any) -> tuple[int, bytes]:
            if TOKEN not in self.headers["Authorization"]:
                return 401, b"{}"
            failure = github.failure(self.command, path.removeprefix(f"/repos/{REPOSITORY}/"))
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
