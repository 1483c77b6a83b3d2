"""Allow-list of jobs, with the state that the machine must be in: root's own file, in TOML."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from lab.runner.refusal import Refused, quoted
from lab.runner.table import read_list, read_number, read_text, read_texts, read_value, require_keys

PUSH: Final = "push"
MERGE_GROUP: Final = "merge_group"
DISPATCH: Final = "workflow_dispatch"
REQUEST: Final = "pull_request_target"
COMMENT: Final = "issue_comment"
EVENTS: Final = (PUSH, MERGE_GROUP, DISPATCH, REQUEST, COMMENT)
"""No allow-list can name another: the others run an untrusted workflow, or without permission."""

_NEEDED: Final = {"repository", "repository_id", "event", "refs", "workflows"}
_KNOWN: Final[Mapping[str, frozenset[str]]] = {
    PUSH: frozenset({"unprotected"}),
    MERGE_GROUP: frozenset(),
    DISPATCH: frozenset({"unprotected", "actors", "own_commit", "inputs", "sha_input"}),
    REQUEST: frozenset({"unprotected", "actors"}),
    COMMENT: frozenset({"unprotected", "actors"}),
}
"""Keys that a rule for an event may have in addition to those that all need."""

_EVERY_WRITER: Final = "github-actions[bot]"
"""Whoever may push a branch may push a workflow that starts others by this name."""

_REPOSITORY: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]*)/[A-Za-z0-9._-]+")
_BRANCH: Final = re.compile(r"refs/heads/[A-Za-z0-9][A-Za-z0-9._/-]*")
_WORKFLOW: Final = re.compile(r"\.github/workflows/[A-Za-z0-9._-]+\.ya?ml")
_ACTOR: Final = re.compile(r"[A-Za-z0-9_-]+(?:\[bot\])?")
_INPUT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_SETTINGS: Final = {"governor": None, "turbo": ("on", "off"), "smt": ("on", "off")}


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Jobs that may run.

    Attributes:
        repository: ``OWNER/NAME``.
        repository_id: its number, which does not change if another owner takes over the name.
        event: one of `EVENTS`.
        refs: full names of branches; of a merge group, the branch it is for; of pull requests and comments, the
            default branch, which the workflow is taken from.
        workflows: paths of the workflows that may be started, ``.github/workflows/…``.
        unprotected: whether the branch need not be protected, as where a repository cannot have protected branches.
        actors: of starts by hand, pull requests and comments, logins whose word counts for any commit; empty with
            `own_commit`.
        own_commit: of starts by hand, whether everybody may, who names the commit that the branch is at.
        inputs: with `own_commit`, the values that other inputs may have, by name.
        sha_input: of a start by hand, the input that holds the commit.
    """

    repository: str
    repository_id: int
    event: str
    refs: tuple[str, ...]
    workflows: tuple[str, ...]
    unprotected: bool = False
    actors: tuple[str, ...] = ()
    own_commit: bool = False
    inputs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sha_input: str = "sha"


@dataclass(frozen=True, kw_only=True)
class Demands:
    """The state in which this machine measures.

    Attributes:
        max_busy: share of all CPUs' time that others may use before a job begins.
        settle_s: for so long the end of what makes it busier is waited for, seconds.
        lock: name of the lock that measuring sessions hold.
        settings: of ``governor``, ``turbo`` and ``smt`` those that must have a value.
    """

    max_busy: float
    settle_s: float
    lock: str
    settings: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class AllowList:
    """The whole file.

    Attributes:
        server_url: of the GitHub that the runner belongs to.
        rules: what may run.
        demands: on the machine.
    """

    server_url: str
    rules: tuple[Rule, ...]
    demands: Demands


def parse_allow_list(content: bytes) -> AllowList:
    """The file's content.

    Raises:
        Refused: it is not what it should be; nothing runs until it is mended.
    """
    try:
        table = tomllib.loads(content.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise Refused(f"the allow-list is no TOML: {quoted(str(error))}") from None
    require_keys(table, "the allow-list", needed={"allow", "machine"}, known={"server_url"})
    rules = read_list(table, "allow", dict)
    if not rules:
        raise Refused("the allow-list allows nothing: it has no table [[allow]]")
    return AllowList(
        server_url=read_text(table, "server_url", re.compile(r"https://[a-z0-9.-]+"), default="https://github.com"),
        rules=tuple(map(_rule, rules)),
        demands=_demands(read_value(table, "machine", dict)),
    )


def _rule(table: Mapping[str, Any]) -> Rule:
    require_keys(table, "[[allow]]", needed=_NEEDED, known=set().union(*_KNOWN.values()))
    event = read_text(table, "event", re.compile(".*"))
    if event not in EVENTS:
        raise Refused(f"[[allow]] names the event {quoted(event)}; only {', '.join(EVENTS)} can be allowed")
    if foreign := sorted(table.keys() - _NEEDED - _KNOWN[event]):
        raise Refused(f"[[allow]] of {event} cannot have {', '.join(foreign)}")
    rule = Rule(
        repository=read_text(table, "repository", _REPOSITORY),
        repository_id=read_value(table, "repository_id", int),
        event=event,
        refs=read_texts(table, "refs", _BRANCH),
        workflows=read_texts(table, "workflows", _WORKFLOW),
        unprotected=_read_flag(table, "unprotected"),
        actors=read_texts(table, "actors", _ACTOR) if "actors" in table else (),
        own_commit=_read_flag(table, "own_commit"),
        inputs=_read_inputs(table),
        sha_input=read_text(table, "sha_input", _INPUT, default="sha"),
    )
    _require_word(rule)
    return rule


def _read_flag(table: Mapping[str, Any], key: str) -> bool:
    return bool(read_value(table, key, bool)) if key in table else False


def _read_inputs(table: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    inputs = read_value(table, "inputs", dict) if "inputs" in table else {}
    return {name: read_texts(inputs, name, re.compile("[ -~]*")) for name in inputs}


def _require_word(rule: Rule) -> None:
    """Somebody's word on the commit: named people's on any, or the review of all that is on a protected branch."""
    if rule.event in {REQUEST, COMMENT} and not rule.actors:
        raise Refused(f"[[allow]] of {rule.event} needs actors, whose word on a commit counts")
    if rule.event == DISPATCH and rule.own_commit == bool(rule.actors):
        raise Refused(f"[[allow]] of {DISPATCH} needs either actors, who may name any commit, or own_commit = true")
    if _EVERY_WRITER in rule.actors:
        raise Refused(f"actors has {_EVERY_WRITER}, which every writer can act as")
    if rule.inputs and not rule.own_commit:
        raise Refused("[[allow]] has inputs without own_commit = true; its actors may give any")
    if rule.own_commit and rule.unprotected:
        raise Refused("[[allow]] has own_commit = true, which trusts a protected branch, and unprotected = true")


def _demands(table: Mapping[str, Any]) -> Demands:
    require_keys(table, "[machine]", needed={"max_busy"}, known={"settle_s", "lock", *_SETTINGS})
    max_busy, settle_s = read_number(table, "max_busy"), read_number(table, "settle_s", default=0.0)
    if not 0 < max_busy <= 1 or not 0 <= settle_s <= 600:
        raise Refused("[machine] needs 0 < max_busy <= 1 and 0 <= settle_s <= 600")
    settings = {name: read_text(table, name, re.compile("[a-z_]+")) for name in _SETTINGS if name in table}
    for name, value in settings.items():
        values = _SETTINGS[name]
        if values is not None and value not in values:
            raise Refused(f"[machine] has {name} = {quoted(value)}; it can be {' or '.join(values)}")
    lock = read_text(table, "lock", re.compile("[A-Za-z0-9._-]{1,90}"), default="ldos-measuring")
    return Demands(max_busy=max_busy, settle_s=settle_s, lock=lock, settings=settings)
