"""What may run on this machine, and in which state it must be: root's own file, in TOML."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from lab.runner.refusal import Refused, quoted

PUSH: Final = "push"
MERGE_GROUP: Final = "merge_group"
DISPATCH: Final = "workflow_dispatch"
EVENTS: Final = (PUSH, MERGE_GROUP, DISPATCH)
"""No allow-list can name another: whoever can open a pull request or write a comment could start the others."""

_REPOSITORY: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]*)/[A-Za-z0-9._-]+")
_BRANCH: Final = re.compile(r"refs/heads/[A-Za-z0-9][A-Za-z0-9._/-]*")
_WORKFLOW: Final = re.compile(r"\.github/workflows/[A-Za-z0-9._-]+\.ya?ml")
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
        actors: logins that may start by hand; empty for everybody who can.
        sha_input: of a start by hand, the input that holds the commit.
    """

    repository: str
    repository_id: int
    event: str
    refs: tuple[str, ...]
    workflows: tuple[str, ...]
    actors: tuple[str, ...] = ()
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
    _require_keys(table, "the allow-list", needed={"allow", "machine"}, known={"server_url"})
    rules = _list_of(table, "allow", dict)
    if not rules:
        raise Refused("the allow-list allows nothing: it has no table [[allow]]")
    return AllowList(
        server_url=_text(table, "server_url", re.compile(r"https://[a-z0-9.-]+"), default="https://github.com"),
        rules=tuple(map(_rule, rules)),
        demands=_demands(_value(table, "machine", dict)),
    )


def _rule(table: Mapping[str, Any]) -> Rule:
    needed = {"repository", "repository_id", "event", "refs", "workflows"}
    _require_keys(table, "[[allow]]", needed=needed, known={"actors", "sha_input"})
    event = _text(table, "event", re.compile(".*"))
    if event not in EVENTS:
        raise Refused(f"[[allow]] names the event {quoted(event)}; only {', '.join(EVENTS)} can be allowed")
    if event != DISPATCH and {"actors", "sha_input"} & table.keys():
        raise Refused(f"[[allow]] has actors or sha_input for the event {event}, which nobody starts by hand")
    return Rule(
        repository=_text(table, "repository", _REPOSITORY),
        repository_id=_value(table, "repository_id", int),
        event=event,
        refs=_texts(table, "refs", _BRANCH),
        workflows=_texts(table, "workflows", _WORKFLOW),
        actors=_texts(table, "actors", re.compile(r"[A-Za-z0-9\[\]-]+")) if "actors" in table else (),
        sha_input=_text(table, "sha_input", re.compile(r"[A-Za-z_][A-Za-z0-9_-]*"), default="sha"),
    )


def _demands(table: Mapping[str, Any]) -> Demands:
    _require_keys(table, "[machine]", needed={"max_busy"}, known={"settle_s", "lock", *_SETTINGS})
    max_busy, settle_s = _number(table, "max_busy"), _number(table, "settle_s", default=0.0)
    if not 0 < max_busy <= 1 or not 0 <= settle_s <= 600:
        raise Refused("[machine] needs 0 < max_busy <= 1 and 0 <= settle_s <= 600")
    settings = {name: _text(table, name, re.compile("[a-z_]+")) for name in _SETTINGS if name in table}
    for name, value in settings.items():
        values = _SETTINGS[name]
        if values is not None and value not in values:
            raise Refused(f"[machine] has {name} = {quoted(value)}; it can be {' or '.join(values)}")
    lock = _text(table, "lock", re.compile("[A-Za-z0-9._-]{1,90}"), default="ldos-measuring")
    return Demands(max_busy=max_busy, settle_s=settle_s, lock=lock, settings=settings)


def _require_keys(table: Mapping[str, Any], where: str, *, needed: set[str], known: set[str]) -> None:
    missing, unknown = sorted(needed - table.keys()), sorted(table.keys() - needed - known)
    if missing:
        raise Refused(f"{where} has no {', '.join(missing)}")
    if unknown:
        raise Refused(f"{where} has unknown keys: {quoted(', '.join(unknown))}")


def _value(table: Mapping[str, Any], key: str, kind: type) -> Any:
    value = table[key]
    if type(value) is not kind:
        raise Refused(f"{key} of the allow-list is not of type {kind.__name__}")
    return value


def _number(table: Mapping[str, Any], key: str, *, default: float | None = None) -> float:
    if key not in table and default is not None:
        return default
    value = table[key]
    if type(value) not in {int, float} or math.isnan(value):
        raise Refused(f"{key} of the allow-list is no number")
    return float(value)


def _text(table: Mapping[str, Any], key: str, form: re.Pattern[str], *, default: str | None = None) -> str:
    if key not in table and default is not None:
        return default
    value = _value(table, key, str)
    if form.fullmatch(value) is None:
        raise Refused(f"{key} of the allow-list cannot be {quoted(value)}")
    return str(value)


def _list_of(table: Mapping[str, Any], key: str, kind: type) -> list[Any]:
    values = _value(table, key, list)
    if any(type(value) is not kind for value in values):
        raise Refused(f"{key} of the allow-list is no list of {kind.__name__}")
    return list(values)


def _texts(table: Mapping[str, Any], key: str, form: re.Pattern[str]) -> tuple[str, ...]:
    values = _list_of(table, key, str)
    if not values:
        raise Refused(f"{key} of the allow-list is empty")
    for value in values:
        if form.fullmatch(value) is None:
            raise Refused(f"{key} of the allow-list cannot hold {quoted(value)}")
    return tuple(values)
