"""The status ``ldos`` of a commit: one for all machines, and one for each class of them where there are several.

A status belongs to a commit and says in its description against which base the commit was measured. GitHub keeps the
newest of each context.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from github_api import BOT, Api, at

CONTEXT: Final = "ldos"
FOR_MACHINE: Final = "waits for the machine"
"""Text of a commit that is about to be measured."""

VERDICTS: Final = "verdicts.json"
"""File in which a job without rights says what was decided."""

_LONGEST: Final = 140
_BASE: Final = re.compile(r"; base ([0-9a-f]{40})$")
_RUN: Final = re.compile(r"/actions/runs/([0-9]{1,20})$")


class State(StrEnum):
    """State of a commit, as GitHub names them."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"
    ERROR = "error"


FINAL: Final = frozenset({State.SUCCESS, State.FAILURE})
"""States of a commit that was measured."""


@dataclass(frozen=True)
class Status:
    """A status as it stands.

    Attributes:
        text: of its description, without the base.
        base: commit that it was measured against; empty where none is named.
        created_at: as GitHub writes times.
        url: page that it leads to, as it stands there.
    """

    state: str
    text: str
    base: str
    created_at: str
    url: str = ""

    @property
    def run(self) -> str:
        """The number of the run of workflows that it leads to; empty where it leads to none."""
        found = _RUN.search(self.url)
        return found.group(1) if found else ""


def context_of(label: str) -> str:
    """Context of the machines with a label; that of all together is `CONTEXT`."""
    return f"{CONTEXT} ({label})"


def write(api: Api, commit: str, state: State, text: str, *, base: str, url: str, context: str = CONTEXT) -> str:
    """Writes a status; says so.

    Args:
        text: for people; too much of it is cut off.
        base: commit to name; empty for none.
        url: page that it leads to.
        context: of all machines together, or of a class of them.
    """
    ending = f"; base {base}" if base else ""
    shown = text if len(text) + len(ending) <= _LONGEST else f"{text[: _LONGEST - len(ending) - 1]}…"
    body = {"state": state.value, "context": context, "description": f"{shown}{ending}"}
    api.ask("POST", f"statuses/{commit}", {**body, **({"target_url": url} if url else {})})
    return f"{context} of {commit} is {state.value}: {shown}"


def read_all(api: Api, commit: str) -> dict[str, Status]:
    """Our newest status of a commit in each context."""
    found: dict[str, Status] = {}
    for each in api.pages(f"commits/{commit}/statuses"):
        context = str(each.get("context"))
        is_ours = context.partition(" ")[0] == CONTEXT and at(each, "creator", "login") == BOT
        if is_ours and context not in found:
            found[context] = _parse(each)
    return found


def _parse(answer: Mapping[str, Any]) -> Status:
    text = str(answer.get("description") or "")
    base = _BASE.search(text)
    state, created_at, url = (str(answer.get(name) or "") for name in ("state", "created_at", "target_url"))
    return Status(state, _BASE.sub("", text), base.group(1) if base else "", created_at, url)
