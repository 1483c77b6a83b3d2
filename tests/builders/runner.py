"""Jobs as GitHub's runner announces them: variables, and payloads in the shapes of GitHub's webhooks.

Reference: GitHub's "Webhook events and payloads"; actions/runner, ``GitHubContext.cs``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = "arm-makers/arm"
NUMBER = 4711
SHA = "1f" * 20
BASE_SHA = "2e" * 20
MAIN = "refs/heads/main"
QUEUED = f"refs/heads/gh-readonly-queue/main/pr-12-{BASE_SHA}"
GATE = ".github/workflows/gate.yml"
NIGHT = ".github/workflows/explore.yml"

ALLOW_LIST = f"""
[[allow]]
repository = "{REPOSITORY}"
repository_id = {NUMBER}
event = "push"
refs = ["{MAIN}"]
workflows = ["{GATE}", ".github/workflows/baseline.yml"]

[[allow]]
repository = "{REPOSITORY}"
repository_id = {NUMBER}
event = "merge_group"
refs = ["{MAIN}"]
workflows = ["{GATE}"]

[[allow]]
repository = "{REPOSITORY}"
repository_id = {NUMBER}
event = "workflow_dispatch"
refs = ["{MAIN}"]
workflows = ["{GATE}"]
actors = ["maintainer"]

[[allow]]
repository = "{REPOSITORY}"
repository_id = {NUMBER}
event = "workflow_dispatch"
refs = ["{MAIN}"]
workflows = ["{NIGHT}"]
own_commit = true
inputs = {{ what = ["sweep", "breaking"] }}

[machine]
max_busy = 1.0
lock = "LOCK"
"""


@dataclass(frozen=True)
class Started:
    """What a job-started hook finds."""

    variables: Mapping[str, str]
    payload: Mapping[str, Any]

    def changed(self, payload: Mapping[str, Any] | None = None, **variables: str | None) -> Started:
        """With other variables (``None`` takes one away), and with a payload where some keys differ, ``a.b`` below."""
        kept = {name: value for name, value in {**self.variables, **variables}.items() if value is not None}
        made = json.loads(json.dumps(self.payload))
        for place, value in (payload or {}).items():
            *above, last = place.split(".")
            table = made
            for key in above:
                table = table[key]
            table[last] = value
        return Started(kept, made)

    def environment(self, folder: Path) -> dict[str, str]:
        """The variables, with the payload in a file as the runner writes it."""
        file = folder / "_github_workflow" / "event.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(self.payload), "utf-8")
        return {**self.variables, "GITHUB_EVENT_PATH": str(file)}


def _variables(event: str, ref: str, **changes: str) -> dict[str, str]:
    plain = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_ACTOR": "maintainer",
        "GITHUB_TRIGGERING_ACTOR": "maintainer",
        "GITHUB_API_URL": "https://api.github.com",
        "GITHUB_BASE_REF": "",
        "GITHUB_HEAD_REF": "",
        "GITHUB_EVENT_NAME": event,
        "GITHUB_REF": ref,
        "GITHUB_REF_NAME": ref.removeprefix("refs/heads/"),
        "GITHUB_REF_PROTECTED": "true",
        "GITHUB_REF_TYPE": "branch",
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_REPOSITORY_ID": str(NUMBER),
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_SHA": SHA,
        "GITHUB_WORKFLOW": "Gate",
        "GITHUB_WORKFLOW_REF": f"{REPOSITORY}/{GATE}@{ref}",
        "GITHUB_WORKFLOW_SHA": SHA,
    }
    return {**plain, **changes}


def _repository(name: str = REPOSITORY, number: int = NUMBER) -> dict[str, Any]:
    owner, _, short = name.partition("/")
    return {
        "id": number,
        "node_id": "R_kgDO",
        "name": short,
        "full_name": name,
        "private": False,
        "owner": {"login": owner, "id": 1, "type": "Organization"},
        "fork": name != REPOSITORY,
        "default_branch": "main",
        "topics": [],
        "license": None,
    }


def _sender(login: str = "maintainer") -> dict[str, Any]:
    return {"login": login, "id": 7, "type": "User", "site_admin": False}


def _commit() -> dict[str, Any]:
    who = {"name": "A Maintainer", "email": "m@example.org"}
    return {"id": SHA, "tree_id": "3d" * 20, "message": "Slow the arm", "author": who, "committer": who}


def push() -> Started:
    """To the main branch."""
    payload = {
        "ref": MAIN,
        "before": BASE_SHA,
        "after": SHA,
        "base_ref": None,
        "compare": f"https://github.com/{REPOSITORY}/compare/2e2e2e2e2e2e...1f1f1f1f1f1f",
        "created": False,
        "deleted": False,
        "forced": False,
        "commits": [{**_commit(), "added": [], "removed": [], "modified": ["arm.py"], "distinct": True}],
        "head_commit": _commit(),
        "pusher": {"name": "maintainer", "email": "m@example.org"},
        "repository": _repository(),
        "sender": _sender(),
    }
    return Started(_variables("push", MAIN), payload)


def merge_group() -> Started:
    """A queue's, for the main branch."""
    group = {
        "head_sha": SHA,
        "head_ref": QUEUED,
        "base_sha": BASE_SHA,
        "base_ref": MAIN,
        "head_commit": _commit(),
    }
    payload = {
        "action": "checks_requested",
        "merge_group": group,
        "repository": _repository(),
        "organization": {"login": "arm-makers", "id": 1},
        "sender": _sender("github-merge-queue[bot]"),
    }
    return Started(_variables("merge_group", QUEUED, GITHUB_REF_PROTECTED="false"), payload)


def dispatch() -> Started:
    """By hand, for a commit that the maintainer typed."""
    payload = {
        "inputs": {"sha": "4c" * 20, "base": "main"},
        "ref": MAIN,
        "repository": _repository(),
        "sender": _sender(),
        "workflow": GATE,
    }
    return Started(_variables("workflow_dispatch", MAIN), payload)


def nightly() -> Started:
    """By a schedule's job, for the commit that the main branch is at."""
    payload = {
        "inputs": {"sha": SHA, "what": "sweep", "note": ""},
        "ref": MAIN,
        "repository": _repository(),
        "sender": _sender("github-actions[bot]"),
        "workflow": NIGHT,
    }
    variables = _variables(
        "workflow_dispatch",
        MAIN,
        GITHUB_ACTOR="github-actions[bot]",
        GITHUB_TRIGGERING_ACTOR="github-actions[bot]",
        GITHUB_WORKFLOW_REF=f"{REPOSITORY}/{NIGHT}@{MAIN}",
    )
    return Started(variables, payload)


def fork_pull_request(event: str = "pull_request") -> Started:
    """Of a stranger, whose branch has a workflow of its own."""
    stranger = "stranger/arm"
    head = {"label": "stranger:steal", "ref": "steal", "sha": SHA, "repo": _repository(stranger, 666)}
    base = {"label": "arm-makers:main", "ref": "main", "sha": BASE_SHA, "repo": _repository()}
    payload = {
        "action": "opened",
        "number": 13,
        "pull_request": {"number": 13, "state": "open", "title": "Typo", "head": head, "base": base, "draft": False},
        "repository": _repository(),
        "sender": _sender("stranger"),
    }
    variables = _variables(
        event,
        "refs/pull/13/merge",
        GITHUB_ACTOR="stranger",
        GITHUB_TRIGGERING_ACTOR="stranger",
        GITHUB_BASE_REF="main",
        GITHUB_HEAD_REF="steal",
        GITHUB_REF_PROTECTED="false",
        GITHUB_WORKFLOW_REF=f"{REPOSITORY}/.github/workflows/steal.yml@refs/pull/13/merge",
    )
    return Started(variables, payload)


def workflow_run() -> Started:
    """After a stranger's pull request: of the main branch, with its rights, and by nothing but its name to be told."""
    run = {"id": 99, "name": "Check", "event": "pull_request", "head_branch": "steal", "head_sha": BASE_SHA}
    payload = {
        "action": "completed",
        "workflow_run": {**run, "conclusion": "success", "head_repository": _repository("stranger/arm", 666)},
        "workflow": {"id": 5, "name": "Check", "path": ".github/workflows/check.yml"},
        "repository": _repository(),
        "sender": _sender("stranger"),
    }
    return Started(_variables("workflow_run", MAIN, GITHUB_ACTOR="stranger"), payload)


def issue_comment() -> Started:
    """A stranger's, below a pull request."""
    payload = {
        "action": "created",
        "issue": {"number": 13, "title": "Typo", "state": "open", "pull_request": {"url": "https://api.github.com/x"}},
        "comment": {"id": 1, "body": "/measure", "user": _sender("stranger")},
        "repository": _repository(),
        "sender": _sender("stranger"),
    }
    return Started(_variables("issue_comment", MAIN, GITHUB_ACTOR="stranger"), payload)


def schedule() -> Started:
    """A clock's."""
    payload = {"schedule": "17 2 * * *", "workflow": NIGHT, "repository": _repository()}
    return Started(_variables("schedule", MAIN), payload)
