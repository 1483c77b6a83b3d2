"""Ends statuses that would wait forever: GitHub drops a job that no machine took after a day, without a notice."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import statuses
from github_api import Api, Failed, commit_in
from pull_requests import open_ones
from statuses import State
from word import COMMAND

_NEWEST: Final = 30
"""Commits of the default branch that are looked at."""


def sweep(api: Api, *, branch: str, hours: float, now: datetime) -> str:
    """Turns statuses that have been pending for too long into errors; returns what was written."""
    printed = [
        line for commit, advice in _commits(api, branch) for line in _sweep_commit(api, commit, advice, hours, now)
    ]
    return "\n".join(printed) or "nothing has waited for too long"


def _commits(api: Api, branch: str) -> Iterator[tuple[str, str]]:
    """Heads of open pull requests, and the newest commits of a branch; each once, with what can be done about it."""
    newest = api.ask("GET", f"commits?sha={branch}&per_page={_NEWEST}")
    if not isinstance(newest, list):
        raise Failed("GitHub's answer is no list of commits")
    found = {commit_in(each, "sha"): "run its workflow again" for each in newest}
    found |= {each.head: f"a maintainer comments {COMMAND} {each.head}" for each in open_ones(api)}
    yield from found.items()


def _sweep_commit(api: Api, commit: str, advice: str, hours: float, now: datetime) -> Iterator[str]:
    for context, found in statuses.read_all(api, commit).items():
        if found.state == State.PENDING and now - _time(found.created_at) > timedelta(hours=hours):
            text = f"timed out after {hours:g} h; {advice}"
            yield statuses.write(api, commit, State.ERROR, text, base="", url="", context=context)


def _time(text: str) -> datetime:
    """A time as GitHub writes it; one that cannot be read is long past."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
