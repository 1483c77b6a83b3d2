"""Table of events, who causes them, and kinds of repository, and of what happens then: taken from what decides.

Each row is an event as GitHub sends it, given to the workflow's program and to the machine's hook. ``python -m
tests.builders.event_table`` writes the table into ``lab/runner/README.md``.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from lab.runner.main import check
from lab.runner.refusal import Refused
from tests.builders.runner import (
    ALLOW_LIST,
    BASE_SHA,
    HEAD,
    Started,
    dispatch,
    fork_pull_request,
    maintainers_word,
    merge_group,
    nightly,
    pull_request_target,
    push,
    schedule,
    workflow_run,
)
from tests.fakes.github_api import TOKEN, FakeGitHub, running

ROOT: Final = Path(__file__).parents[2]
README: Final = ROOT / "lab" / "runner" / "README.md"
BEGIN, END = "<!-- events: begin -->\n", "<!-- events: end -->"
KINDS: Final = ("`main` protected", "not protected", "with root's `unprotected = true`")
_OLD: Final = "7d" * 20


@dataclasses.dataclass(frozen=True)
class Row:
    """An event.

    Attributes:
        event, who, where: for the table.
        started: what GitHub sends.
        status_text: written on the commit; empty if the workflow's program decides that.
    """

    event: str
    who: str
    where: str
    started: Started
    status_text: str = ""


MAINTAINER, WRITER, STRANGER = "maintainer", "writer", "stranger"
OWN, BRANCH, FORK, NONE = "own branch", "branch of the repository", "fork", "–"
BY_VERDICT: Final = "pending, then the verdict"
"""By ``verdict.yml``, when the run of the gate begins and when it has ended."""

ANSWERED, NOTHING = "none; answered with the line to paste", "none"
_NO_JOB: Final = (ANSWERED, NOTHING)
_ACTIONS: Final = {
    "opened": "opened",
    "synchronize": "pushed to",
    "reopened": "reopened",
    "edited": "with another base",
}


def rows() -> Iterator[Row]:
    """Every kind of event that there is a rule for, or that somebody might add one for."""
    target = pull_request_target
    for action in ("opened", "synchronize", "reopened", "edited"):
        name = f"pull request {_ACTIONS[action]}"
        yield Row(name, MAINTAINER, OWN, target(action))
        yield Row(name, MAINTAINER, "another writer's branch", target(action, author=WRITER))
        yield Row(name, WRITER, OWN, target(action, sender=WRITER, author=WRITER))
        yield Row(name, STRANGER, FORK, target(action, sender=STRANGER, author=STRANGER, of_fork=True))
        yield Row(name, MAINTAINER, FORK, target(action, of_fork=True))
    yield Row("label `ldos`", MAINTAINER, BRANCH, target("labeled", author=WRITER))
    yield Row("label `ldos`", MAINTAINER, FORK, target("labeled", author=STRANGER, of_fork=True))
    yield Row("label `ldos`", WRITER, BRANCH, target("labeled", sender=WRITER, author=WRITER))
    yield Row("comment `/ldos SHA`, the head", MAINTAINER, "any", maintainers_word())
    yield Row("comment `/ldos SHA`, an old commit", MAINTAINER, "any", maintainers_word(f"/ldos {_OLD}"))
    yield Row("comment `/ldos`", MAINTAINER, "any", maintainers_word("/ldos"))
    yield Row("comment `/ldos SHA`, edited", MAINTAINER, "any", maintainers_word(action="edited"))
    yield Row("comment `/ldos SHA`, the head", "anybody else", "any", maintainers_word(sender=STRANGER))
    yield Row("start by hand of a commit", MAINTAINER, "any", dispatch())
    other = dispatch().changed({"sender.login": WRITER}, GITHUB_ACTOR=WRITER, GITHUB_TRIGGERING_ACTOR=WRITER)
    yield Row("start by hand of a commit", WRITER, "any", other)
    yield Row("night, `own_commit = true`", "a clock", "`main`", nightly(), NONE)
    yield Row("`push` to `main`", "whoever may", "`main`", push(), BY_VERDICT)
    yield Row("`merge_group`", "the queue", "the group", merge_group(), BY_VERDICT)
    yield Row("`pull_request`", "anybody", "any", fork_pull_request(), NONE)
    yield Row("`workflow_run`", "anybody", NONE, workflow_run(), NONE)
    yield Row("`schedule`", "a clock", NONE, schedule(), NONE)


@cache
def render_table() -> str:
    """The table in Markdown."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for row in rows():
        status = _status(row)
        cells = (row.who, row.where, status, *_machine(row.started, is_asked=status not in _NO_JOB))
        alike.setdefault(cells, []).append(row.event)
    lines = [f"| {' | '.join(('; '.join(events), *cells))} |" for cells, events in alike.items()]
    heads = ("event", "by", "commit on", "status `ldos`, answer", *(f"a job on the machine, {kind}" for kind in KINDS))
    return "\n".join([f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *lines]) + "\n"


def _status(row: Row) -> str:
    """Output of the workflow's program."""
    if row.status_text:
        return row.status_text
    with running(FakeGitHub()) as github, tempfile.TemporaryDirectory() as folder:
        payload = row.started.payload
        github.open(13, HEAD, BASE_SHA, fork=_is_of_fork(payload))
        github.revisions["main"] = BASE_SHA
        output = Path(folder) / "output"
        _decide(row.started, github.url, output)
        if output.exists():
            return "pending, then the verdict"
        if github.statuses:
            return "pending: waits for a word"
        return ANSWERED if github.comments else NOTHING


def _is_of_fork(payload: Mapping[str, Any]) -> bool:
    found = payload.get("pull_request")
    return found is None or found["head"]["repo"]["full_name"] != payload["repository"]["full_name"]


def _decide(started: Started, url: str, output: Path) -> None:
    """Runs ``.ci/results decide`` in a process of its own, as the job does."""
    event = output.with_name("event.json")
    event.write_text(json.dumps(started.payload), "utf-8")
    subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            ROOT / ".ci/results",
            "decide",
            "--repository",
            "arm-makers/arm",
            "--scenarios",
            "baseline",
        ],
        env={
            "GITHUB_API_URL": url,
            "GITHUB_EVENT_NAME": started.variables["GITHUB_EVENT_NAME"],
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_REPOSITORY": "arm-makers/arm",
            "GITHUB_TOKEN": TOKEN,
            "LDOS_MAINTAINERS": '["maintainer"]',
            "no_proxy": "*",
        },
        capture_output=True,
        check=True,
        timeout=300,
    )


def _machine(started: Started, *, is_asked: bool) -> Iterator[str]:
    """Decisions of the hook, by kind of repository."""
    bare = started.changed(GITHUB_REF_PROTECTED="false")
    by_word = re.sub(r'(?m)^(event = "(?!merge_group)\w+")$', r"\1\nunprotected = true", ALLOW_LIST)
    by_word = re.sub(r"\[\[allow\]\]\n(?:(?!\[\[).*\n)*?own_commit = true\n(?:inputs.*\n)?", "", by_word)
    for each, allowed in ((started, ALLOW_LIST), (bare, ALLOW_LIST), (bare, by_word)):
        yield ("begins" if is_asked else "is not asked for") if _takes(each, allowed) else "is refused"


def _takes(started: Started, allowed: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "runner.toml").write_text(allowed.replace("LOCK", f"ldos-test-{os.getpid()}"), "utf-8")
        (place / "runner.toml").chmod(0o644)
        try:
            check(started.environment(place), place / "runner.toml", owner=os.geteuid(), require=lambda demands: None)
        except Refused:
            return False
        return True


def written(text: str) -> str:
    """The README's text with the table as it is now."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}{render_table()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    README.write_text(written(README.read_text("utf-8")), "utf-8")
