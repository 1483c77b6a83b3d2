"""What may run on this machine, and in which state it must be: root's own file, in TOML."""

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
EVENTS: Final = (PUSH, MERGE_GROUP, DISPATCH)
"""No allow-list can name another: whoever can open a pull request or write a comment could start the others."""

_BY_HAND: Final = {"actors", "own_commit", "inputs", "sha_input"}
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
        repository_id: its number, which stays when somebody else takes over the name.
        event: one of `EVENTS`.
        refs: full names of protected branches; of a merge group, the branch it is for.
        workflows: paths of the workflows that may be started, ``.github/workflows/…``.
        actors: of starts by hand, logins that may name any commit; empty with `own_commit`.
        own_commit: of starts by hand, whether everybody may, who names the commit that the branch is at.
        inputs: with `own_commit`, the values that other inputs may have, by name.
        sha_input: of a start by hand, the input that holds the commit.
    """

    repository: str
    repository_id: int
    event: str
    refs: tuple[str, ...]
    workflows: tuple[str, ...]
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
        table = tomllib.loads(content.decode())
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
    needed = {"repository", "repository_id", "event", "refs", "workflows"}
    require_keys(table, "[[allow]]", needed=needed, known=_BY_HAND)
    event = read_text(table, "event", re.compile(".*"))
    if event not in EVENTS:
        raise Refused(f"[[allow]] names the event {quoted(event)}; only {', '.join(EVENTS)} can be allowed")
    if event != DISPATCH and (named := sorted(_BY_HAND & table.keys())):
        raise Refused(f"[[allow]] has {', '.join(named)} for the event {event}, which nobody starts by hand")
    return Rule(
        repository=read_text(table, "repository", _REPOSITORY),
        repository_id=read_value(table, "repository_id", int),
        event=event,
        refs=read_texts(table, "refs", _BRANCH),
        workflows=read_texts(table, "workflows", _WORKFLOW),
        **(_by_hand(table) if event == DISPATCH else {}),
    )


def _by_hand(table: Mapping[str, Any]) -> dict[str, Any]:
    """Who may start a job, and of which commit: some name any, or everybody that of the branch, which was reviewed."""
    own_commit = read_value(table, "own_commit", bool) if "own_commit" in table else False
    if own_commit == ("actors" in table):
        raise Refused(f"[[allow]] of {DISPATCH} needs either actors, who may name any commit, or own_commit = true")
    actors = read_texts(table, "actors", _ACTOR) if "actors" in table else ()
    if _EVERY_WRITER in actors:
        raise Refused(f"actors has {_EVERY_WRITER}, which every writer can act as: allow own_commit = true instead")
    inputs = read_value(table, "inputs", dict) if "inputs" in table else {}
    if inputs and not own_commit:
        raise Refused("[[allow]] has inputs without own_commit = true; its actors may give any")
    return {
        "actors": actors,
        "own_commit": own_commit,
        "inputs": {name: read_texts(inputs, name, re.compile("[ -~]*")) for name in inputs},
        "sha_input": read_text(table, "sha_input", _INPUT, default="sha"),
    }


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
