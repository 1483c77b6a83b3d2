"""The one issue about a regression on the default branch: opened, written again while it lasts, closed at its end.

A status compares a commit with one base. The commit after a regressed one, compared with that one, is green, although
the regression is still there. So the issue keeps the last good commit, `find_base` lets the gate compare later pushes
with it, and only a success against it closes the issue. Somebody who closes it by hand accepts the new level.

Reference: GitHub's REST API, "Issues" and "Compare two commits".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import statuses
from github_api import BOT, Api, Failed, NotFound, at, commit_in
from statuses import CONTEXT, FINAL, State, Status
from surroundings import server

MARK: Final = "<!-- pytest-ldos regression -->"
_RANGE: Final = re.compile(r"<!-- range ([0-9a-f]{40})?\.\.([0-9a-f]{40}) -->")
_SCENARIOS: Final = re.compile(r"regressed: (.+)")
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_ENDING: Final = (
    "This text is written again with each verdict. The issue is closed when a commit passes, compared with the last "
    "good one. To accept the new level, close it by hand."
)
_LONGEST: Final = 200
_NEWEST: Final = 250
"""Commits of the branch, along first parents, that are looked at for a verdict."""

_MOST_FAILURES: Final = 50
"""Regressed commits, each compared with the one before, that are followed to the first."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on a commit."""

    commit: str
    status: Status


@dataclass(frozen=True)
class Range:
    """Commits of which one brought the regression.

    Attributes:
        good: last commit before it; empty where that is unknown.
        first: first commit that was measured with it.
    """

    good: str
    first: str


@dataclass(frozen=True)
class Issue:
    """An issue of ours.

    Attributes:
        known: the range in its text; ``None`` where there is none that can be read.
        closed_at: as GitHub writes times; empty while it is open.
    """

    number: int
    title: str
    body: str
    known: Range | None
    closed_at: str


def notify(api: Api, branch: str) -> str:
    """Brings the issue in line with the newest verdict on a branch; returns what was done."""
    newest = _newest_verdict(api, branch)
    if newest is None:
        return f"none of the newest commits of {branch} has a verdict"
    issues = _open_issues(api)
    if not issues:
        return _open(api, branch, newest)
    oldest, *others = issues
    known = oldest.known or _range(api, newest.commit, _failures(api, newest))
    if known.good and not _is_past(api, known.good, newest.commit):
        known = Range("", known.first)
    if newest.status.state == State.FAILURE:
        return _write_again(api, oldest, _title(known), _text(api, branch, known, newest))
    if known.good not in ("", newest.commit, newest.status.base):
        return f"issue {oldest.number} stays open: {newest.commit} was not compared with {known.good}"
    text = f"{branch} is as fast as before again: {newest.commit} passed{_against(known.good)}."
    return "\n".join(_close(api, issue, text) for issue in (oldest, *others))


def find_base(api: Api, commit: str) -> str:
    """The last good commit, for a push while the issue is open; empty where there is none in the commit's past."""
    known = next((issue.known for issue in _open_issues(api)), None)
    return known.good if known is not None and known.good and _is_past(api, known.good, commit) else ""


def _newest_verdict(api: Api, branch: str) -> Verdict | None:
    """The verdict on the newest commit that has one; commits that a merge has brought along are of another branch."""
    wanted = ""
    parents: dict[str, str] = {}
    looked_at = 0
    for each in api.pages("commits", sha=branch):
        commit = commit_in(each, "sha")
        wanted = wanted or commit
        parents[commit] = _first_parent(each)
        while wanted in parents:
            found = statuses.read_all(api, wanted).get(CONTEXT)
            if found is not None and found.state in FINAL:
                return Verdict(wanted, found)
            wanted, looked_at = parents[wanted], looked_at + 1
            if not wanted or looked_at == _NEWEST:
                return None
    return None


def _first_parent(answer: Mapping[str, Any]) -> str:
    found = answer.get("parents")
    return commit_in(found[0], "sha") if isinstance(found, list) and found else ""


def _failures(api: Api, newest: Verdict) -> list[Verdict]:
    """Regressed commits, the newest first: each was compared with the next one.

    The newest verdict may be a success against a regressed commit, whose own verdict came no earlier.
    """
    found: list[Verdict] = []
    commit, status = newest.commit, newest.status
    for _ in range(_MOST_FAILURES):
        if status.state == State.FAILURE:
            found.append(Verdict(commit, status))
        elif found or commit != newest.commit:
            break
        if not status.base or status.base == commit or not _is_past(api, status.base, commit):
            break
        before = statuses.read_all(api, status.base).get(CONTEXT)
        if before is None:
            break
        commit, status = status.base, before
    return found


def _range(api: Api, newest: str, failures: list[Verdict]) -> Range:
    if not failures:
        return Range("", newest)
    first = failures[-1]
    base = first.status.base
    return Range(base if base and _is_past(api, base, first.commit) else "", first.commit)


def _is_past(api: Api, commit: str, later: str) -> bool:
    """True if a commit is in the history of another one, or is the same."""
    return _distance(api, commit, later) is not None


def _distance(api: Api, commit: str, later: str) -> int | None:
    """Number of commits that came after one, up to a later one; ``None`` if it is not in the later one's history."""
    try:
        answer = api.ask("GET", f"compare/{commit}...{later}?per_page=1")
    except NotFound:
        return None
    count = at(answer, "ahead_by")
    if at(answer, "status") not in ("ahead", "identical"):
        return None
    if type(count) is not int:
        raise Failed("GitHub's comparison of two commits has no ahead_by")
    return count


def _open_issues(api: Api) -> list[Issue]:
    """Issues of ours that are open: one, unless somebody has opened a closed one again."""
    return sorted(_issues(api, state="open"), key=lambda issue: issue.number)


def _issues(api: Api, **query: str) -> Iterator[Issue]:
    """Issues of ours. Anybody can write the mark; only what we wrote is ours."""
    for each in api.pages("issues", **query):
        body, number = each.get("body"), each.get("number")
        if at(each, "user", "login") != BOT or "pull_request" in each or not isinstance(number, int):
            continue
        if isinstance(body, str) and body.replace("\r\n", "\n").startswith(f"{MARK}\n"):
            found = _RANGE.search(body)
            known = Range(found.group(1) or "", found.group(2)) if found else None
            yield Issue(number, str(each.get("title")), body, known, str(each.get("closed_at") or ""))


def _open(api: Api, branch: str, newest: Verdict) -> str:
    failures = _failures(api, newest)
    if not failures:
        return f"{newest.commit} has not regressed, and no issue is open"
    # Whoever closed an issue has accepted what was measured before.
    since = failures[-1].status.created_at
    closed_at = max((issue.closed_at for issue in _issues(api, state="closed", since=since)), default="")
    failures = [each for each in failures if each.status.created_at > closed_at]
    if not failures:
        return f"the issue about {newest.commit} was closed"
    known = _range(api, newest.commit, failures)
    answer = api.ask("POST", "issues", {"title": _title(known), "body": _text(api, branch, known, failures[0])})
    return f"issue {at(answer, 'number')} was opened"


def _write_again(api: Api, issue: Issue, title: str, text: str) -> str:
    if (issue.title, issue.body.replace("\r\n", "\n").rstrip()) == (title, text.rstrip()):
        return f"issue {issue.number} is up to date"
    api.ask("PATCH", f"issues/{issue.number}", {"title": title, "body": text})
    return f"issue {issue.number} was written again"


def _close(api: Api, issue: Issue, text: str) -> str:
    """Closes it before it comments: a second attempt finds nothing open, and comments no second time."""
    api.ask("PATCH", f"issues/{issue.number}", {"state": "closed", "state_reason": "completed"})
    api.ask("POST", f"issues/{issue.number}/comments", {"body": text})
    return f"issue {issue.number} was closed"


def _title(known: Range) -> str:
    return f"Performance regression since {known.first[:12]}"


def _against(good: str) -> str:
    return f", compared with {good}" if good else ""


def _text(api: Api, branch: str, known: Range, newest: Verdict) -> str:
    """The issue's text. All that is not ours stands in a block of code: GitHub makes no link and no mention of it."""
    home = f"{server()}/{api.repository}"
    count = _distance(api, known.good, known.first) if known.good else None
    run = newest.status.url
    is_run = re.fullmatch(rf"{re.escape(home)}/actions/runs/[0-9]{{1,20}}", run) is not None
    return "\n\n".join(
        [
            f"{MARK}\n<!-- range {known.good}..{known.first} -->",
            f"`{branch}` has regressed. Verdict on {newest.commit}{f', of [this run]({run})' if is_run else ''}:",
            f"```text\n{_inert(newest.status.text)}\n```",
            *_describe_range(home, known, count),
            *_describe_commands(known, count, newest),
            _ENDING,
        ]
    )


def _inert(text: str) -> str:
    """One line that cannot end a block of code."""
    line = "".join(each if each.isprintable() else "?" for each in text.replace("`", "'"))
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _describe_range(home: str, known: Range, count: int | None) -> Iterator[str]:
    if count is None:
        yield (
            f"First measured in {known.first}. The range is unknown: what it was compared with is no longer in the "
            "branch's history."
        )
    else:
        link = f"{home}/compare/{quote(known.good)}...{quote(known.first)}"
        commits = "1 commit" if count == 1 else f"{count} commits"
        yield f"First measured in {known.first}. It came with [{commits} after {known.good}]({link})."


def _describe_commands(known: Range, count: int | None, newest: Verdict) -> Iterator[str]:
    """Commands that measure it again, and that find the commit where there are several."""
    names = _scenarios(newest.status.text)
    base = known.good or newest.status.base
    if not names or not base:
        yield "The run names the scenario, and what it was compared with."
        return
    lines = [f"git checkout {newest.commit}", f'pytest -m "{" or ".join(names)}" --ldos-base {base}']
    is_search = known.good and count != 1
    if is_search:
        lines += [f"ldos bisect {known.good} {known.first} --scenario {each}" for each in names]
    yield "\n".join(["To reproduce it:", "", "```console", *(f"$ {line}" for line in lines), "```"])
    if is_search:
        yield "The search is for T1; if another metric became worse, add `--metric` with its name in the report."


def _scenarios(text: str) -> list[str]:
    """Names of the scenarios in a verdict's text, up to where it goes on with something else."""
    found = _SCENARIOS.match(text.partition(";")[0])
    names: list[str] = []
    for each in found.group(1).split(", ") if found else ():
        if _NAME.fullmatch(each) is None:
            break
        names.append(each)
    return names
