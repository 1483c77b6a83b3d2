"""Decides what becomes of an event: a measurement, a status that waits or needs none, an answer, or nothing.

An event of a pull request is somebody's word for its commit where the commit is in the repository itself. Any other is
named by a maintainer: a comment's payload has no commit, and a push just before a label would make the label name a
commit that was not reviewed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from github_api import BRANCH, COMMIT, Api, Failed, at, commit_in
from pull_requests import PullRequest, ask_pull_request, merge_base, parse_pull_request
from reuse import find_unchanged
from statuses import CONTEXT, State, read_all
from word import COMMAND, STACKS, Acceptance, is_meant, parse_word

LABEL: Final = "ldos"
_ZERO: Final = "0" * 40


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A commit that is to be measured, or waits for somebody's word.

    Attributes:
        number: of its pull request; 0 without one.
        base: commit to compare it with.
        options: of a maintainer's word.
        replaced: commit that the branch was at before; empty where it is not known.
    """

    number: int
    commit: str
    base: str
    options: Mapping[str, str] = field(default_factory=dict)
    replaced: str = ""


@dataclass(frozen=True)
class Measure:
    """It is measured now."""

    wanted: Wanted


@dataclass(frozen=True)
class Wait:
    """It waits for a maintainer's word."""

    wanted: Wanted


@dataclass(frozen=True)
class Unchanged:
    """Nothing that is measured changed since its base; the text has the digests."""

    wanted: Wanted
    text: str


@dataclass(frozen=True)
class Accept:
    """Changes for the worse of a red commit are accepted: what a run measured is judged again."""

    wanted: Wanted
    run: str


@dataclass(frozen=True)
class Answer:
    """A maintainer gets an answer on a pull request."""

    number: int
    text: str


@dataclass(frozen=True)
class Nothing:
    """Nothing becomes of it."""

    reason: str


Decision = Measure | Wait | Unchanged | Accept | Answer | Nothing


def decide(api: Api, event: str, payload: Mapping[str, Any], maintainers: frozenset[str]) -> Decision:
    """Decides what to do about an event.

    Raises:
        Failed: the event is none that can be asked with, or GitHub does not answer.
    """
    if event not in _EVENTS:
        raise Failed(f"the event {event!a} asks for nothing")
    return _EVENTS[event](api, payload, maintainers)


def _of_pull_request(api: Api, payload: Mapping[str, Any], maintainers: frozenset[str]) -> Decision:
    action, sender = str(payload.get("action")), str(at(payload, "sender", "login"))
    found = parse_pull_request(payload.get("pull_request"), api.repository)
    if reason := _why_nothing(action, payload, found):
        return Nothing(reason)
    if action == "labeled":
        return _of_label(api, found, sender.casefold() in maintainers)
    before = str(payload.get("before"))
    replaced = before if action == "synchronize" and COMMIT.fullmatch(before) and before != _ZERO else ""
    wanted = Wanted(number=found.number, commit=found.head, base=merge_base(api, found), replaced=replaced)
    if text := find_unchanged(api, wanted.base, wanted.commit):
        return Unchanged(wanted, text)
    is_word = found.is_own and {sender.casefold(), found.author.casefold()} <= maintainers
    return Measure(wanted) if is_word else Wait(wanted)


def _why_nothing(action: str, payload: Mapping[str, Any], found: PullRequest) -> str:
    """The reason why an event of a pull request requests nothing; empty if it requests something."""
    if not found.is_open:
        return "the pull request is closed"
    if action == "edited" and at(payload, "changes", "base") is None:
        return "its base is what it was"
    if action == "labeled" and at(payload, "label", "name") != LABEL:
        return f"another label than {LABEL}"
    known = {"opened", "synchronize", "reopened", "edited", "labeled"}
    return "" if action in known else f"{action!a} changes neither commit nor base"


def _of_label(api: Api, found: PullRequest, by_maintainer: bool) -> Decision:
    if not by_maintainer:
        return Nothing("who labelled it is not on the allow-list")
    if not found.is_own:
        return Answer(found.number, f"A label does not say which commit of a fork was read. {_say_line(found.head)}")
    return Measure(Wanted(number=found.number, commit=found.head, base=merge_base(api, found)))


def _of_comment(api: Api, payload: Mapping[str, Any], maintainers: frozenset[str]) -> Decision:
    body, sender = str(at(payload, "comment", "body")), str(at(payload, "sender", "login"))
    if payload.get("action") != "created" or not is_meant(body):
        return Nothing("no new comment asks for anything")
    if at(payload, "issue", "pull_request") is None:
        return Nothing("an issue has no commit")
    if sender.casefold() not in maintainers or at(payload, "comment", "user", "login") != sender:
        return Nothing(f"{sender!a} is not on the allow-list")
    number = at(payload, "issue", "number")
    if type(number) is not int:
        raise Failed("the event names no pull request")
    return _of_word(api, ask_pull_request(api, number), body)


def _of_word(api: Api, found: PullRequest, body: str) -> Decision:
    if not found.is_open:
        return Answer(found.number, "This pull request is closed: nothing is measured for it.")
    try:
        word = parse_word(body)
    except Failed as failed:
        return Answer(found.number, f"Not measured: {failed}. {_say_line(found.head)}")
    if word.commit != found.head:
        return Answer(found.number, f"Not measured: `{word.commit}` is not what it is at now. {_say_line(found.head)}")
    if isinstance(word, Acceptance):
        return _of_acceptance(api, found)
    wanted = Wanted(number=found.number, commit=found.head, base=merge_base(api, found), options=word.options)
    return Measure(wanted)


def _of_acceptance(api: Api, found: PullRequest) -> Decision:
    red = read_all(api, found.head).get(CONTEXT)
    if red is None or red.state != State.FAILURE or not red.base or not red.run:
        return Answer(found.number, f"Nothing to accept: `{found.head}` is not red.")
    return Accept(Wanted(number=found.number, commit=found.head, base=red.base), red.run)


def _say_line(commit: str) -> str:
    return f"When you have read its present commit, paste this as a new comment:\n\n```\n{COMMAND} {commit}\n```"


def _of_hand(api: Api, payload: Mapping[str, Any], maintainers: frozenset[str]) -> Decision:
    """Whoever may start workflows; the machine's own list says who may name any commit."""
    commit, base = (str(at(payload, "inputs", name) or "") for name in ("sha", "base"))
    if COMMIT.fullmatch(commit) is None:
        raise Failed("no commit is named by its 40 digits")
    revision = base or str(at(payload, "repository", "default_branch"))
    if BRANCH.fullmatch(revision) is None:
        raise Failed("the base is no commit, branch or tag")
    found = commit_in(api.ask("GET", f"commits/{quote(revision, safe='')}"), "sha")
    stack = str(at(payload, "inputs", "stack") or "")
    if stack not in ("", *STACKS):
        raise Failed(f"the stack is none of {', '.join(STACKS)}")
    return Measure(Wanted(number=0, commit=commit, base=found, options={"stack": stack} if stack else {}))


_EVENTS: Final[Mapping[str, Callable[[Api, Mapping[str, Any], frozenset[str]], Decision]]] = {
    "pull_request_target": _of_pull_request,
    "issue_comment": _of_comment,
    "workflow_dispatch": _of_hand,
}
