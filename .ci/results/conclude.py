"""Writes the statuses of a commit after its measurement.

It is green only where a job without the machine has decided so from the raw trials, and the machine's own job has
succeeded, too, or for a merge group that needs no measurement (see `reuse`). Whatever is missing makes it an error:
nothing else is green that was not measured.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import statuses
from github_api import Api, Failed, commit_in, read_file
from labels import FORM
from pull_requests import Queued, ask_pull_request, contradiction
from reuse import find_measured, find_unchanged
from statuses import CONTEXT, State, context_of
from surroundings import run_url
from word import COMMAND

_MOST_CLASSES: Final = 16
_LONGEST_TEXT: Final = 500
_LARGEST: Final = 65_536
_SHORT: Final = re.compile("[0-9a-f]{12,40}")
"""Records name the first digits of a commit."""

_STATES: Final = (State.SUCCESS, State.ERROR, State.FAILURE)
"""The later, the worse: a regression is what people have to know first."""

SUCCESS: Final = "success"
FAILURE: Final = "failure"
CANCELLED: Final = "cancelled"


@dataclass(frozen=True)
class Judged:
    """The decision about the machines of one class.

    Attributes:
        is_accepted: true where their own job failed because of what was accepted.
    """

    state: State
    text: str
    is_accepted: bool = False


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A measurement that has ended.

    Attributes:
        commit: that was measured.
        base: that it was to be compared with; empty where what was measured says it.
        number: of its pull request; 0 without one.
        queued: its merge group; ``None`` without one.
        result: of the job on the machines, as GitHub calls it.
        run: number of the run of workflows; empty for this one.
        part: options by which less was measured than the gate measures; empty for all of it.
    """

    commit: str
    base: str
    number: int
    queued: Queued | None
    result: str
    run: str = ""
    part: str = ""


def conclude(api: Api, measured: Measured, made: Path) -> str:
    """Writes the status of all machines together, and of each class where there are several; returns what was written.

    Args:
        made: folder with what ``judge.py`` made; nothing is there where nothing came back.

    Raises:
        Failed: what it made cannot be read; the status says so.
    """
    try:
        base, found = _read(api, made / statuses.VERDICTS, measured)
    except Failed as failed:
        _write(api, measured, measured.base, {CONTEXT: Judged(State.ERROR, str(failed))})
        raise
    if known := _known(api, measured, found):
        return _write(api, measured, base, known)
    whole = _whole(api, measured, base, found)
    classes = {context_of(label): _within(whole, each) for label, each in found.items()} if len(found) > 1 else {}
    return _write(api, measured, base, {CONTEXT: whole, **classes})


def _write(api: Api, measured: Measured, base: str, found: Mapping[str, Judged]) -> str:
    url = run_url(measured.run)
    printed = (
        statuses.write(api, measured.commit, each.state, each.text, base=base, url=url, context=context)
        for context, each in found.items()
    )
    return "\n".join(printed)


def _within(whole: Judged, judged: Judged) -> Judged:
    """The status of one class of machines, which is not green if the whole is not."""
    if judged.state is not State.SUCCESS or whole.state is State.SUCCESS:
        return judged
    return Judged(State.ERROR, f"{judged.text} here, but not as a whole: see {CONTEXT}")


def _whole(api: Api, measured: Measured, base: str, found: Mapping[str, Judged]) -> Judged:
    has_verdict = any(each.state is not State.ERROR for each in found.values())
    if not found or (measured.result == CANCELLED and not has_verdict):
        return _without_result(api, measured)
    worst = max(found.values(), key=lambda each: _STATES.index(each.state))
    if worst.state is not State.SUCCESS:
        names = [label for label, each in found.items() if each.state is worst.state]
        return Judged(worst.state, worst.text if len(found) == 1 else f"{worst.text}, on {', '.join(names)}")
    is_accepted = measured.result == FAILURE and any(each.is_accepted for each in found.values())
    if measured.result != SUCCESS and not is_accepted:
        return Judged(State.ERROR, "the job on the machine failed, although its trials passed: see the run")
    if measured.part:
        return Judged(State.PENDING, f"passed with {measured.part} alone; a maintainer asks for all: {COMMAND} COMMIT")
    reason = contradiction(api, measured.commit, base)
    return Judged(State.ERROR, reason) if reason else worst


def _known(api: Api, measured: Measured, found: Mapping[str, Judged]) -> dict[str, Judged]:
    """Verdicts on a merge group that has none of its own: nothing changed, or those on its pull request hold for it."""
    if measured.queued is None or any(each.state is not State.ERROR for each in found.values()):
        return {}
    if text := find_unchanged(api, measured.queued.base, measured.commit):
        classes = [context_of(label) for label in found] if len(found) > 1 else []
        return dict.fromkeys([CONTEXT, *classes], Judged(State.SUCCESS, text))
    known = find_measured(api, measured.queued, measured.commit)
    return {name: Judged(State.SUCCESS, f"{each.text}; measured on the pull request") for name, each in known.items()}


def _without_result(api: Api, measured: Measured) -> Judged:
    if measured.number:
        head = ask_pull_request(api, measured.number).head
        if head != measured.commit:
            return Judged(State.ERROR, f"superseded by {head}")
    if measured.result == CANCELLED:
        return Judged(State.ERROR, "cancelled, or timed out, before there was a result: see the run")
    return Judged(State.ERROR, "no result came from the machine: see the run")


def _read(api: Api, file: Path, measured: Measured) -> tuple[str, dict[str, Judged]]:
    """The base, and what was decided about each class of machines.

    Raises:
        Failed: the file is not what it should be, or is about another commit.
    """
    if not file.exists():
        return measured.base, {}
    try:
        content = json.loads(read_file(file, _LARGEST))
        commit, base, hosts = (content[name] for name in ("commit", "base", "hosts"))
        found = {label: _judged(each["state"], each["text"], each.get("accepted")) for label, each in hosts.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Failed(f"{file} holds no verdicts: {type(error).__name__}") from None
    if commit != measured.commit or not isinstance(base, str) or _SHORT.fullmatch(base) is None:
        raise Failed(f"{file} is about another commit, or names no base")
    if not 0 < len(found) <= _MOST_CLASSES or not all(map(FORM.fullmatch, found)):
        raise Failed(f"{file} names no classes of machines")
    whole = measured.base or commit_in(api.ask("GET", f"commits/{base}"), "sha")
    if not whole.startswith(base):
        raise Failed(f"{file} is about another base")
    return whole, found


def _judged(state: object, text: object, is_accepted: object) -> Judged:
    """The decision, with checked types.

    Raises:
        ValueError: it is not.
    """
    if not isinstance(text, str) or len(text) > _LONGEST_TEXT or not text.isprintable():
        raise ValueError(text)
    found = State(str(state))
    if found not in _STATES:
        raise ValueError(state)
    return Judged(found, text, is_accepted is True)
