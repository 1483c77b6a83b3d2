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
HEAD = "4c" * 20
MAIN = "refs/heads/main"
QUEUED = f"refs/heads/gh-readonly-queue/main/pr-12-{BASE_SHA}"
GATE = ".github/workflows/gate.yml"
ASKED = ".github/workflows/request.yml"
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
workflows = ["{ASKED}"]
actors = ["maintainer"]

[[allow]]
repository = "{REPOSITORY}"
repository_id = {NUMBER}
event = "pull_request_target"
refs = ["{MAIN}"]
workflows = ["{ASKED}"]
actors = ["maintainer", "owner"]

[[allow]]
repository = "{REPOSITORY}"
repository_id = {NUMBER}
event = "issue_comment"
refs = ["{MAIN}"]
workflows = ["{ASKED}"]
actors = ["maintainer", "owner"]

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
    """Environment and payload of a job-started hook."""

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


def _asked(event: str, sender: str, **changes: str) -> dict[str, str]:
    """Variables of the default branch's workflow that a user's action started."""
    who = {"GITHUB_ACTOR": sender, "GITHUB_TRIGGERING_ACTOR": sender}
    workflow = {"GITHUB_WORKFLOW": "Gate on request", "GITHUB_WORKFLOW_REF": f"{REPOSITORY}/{ASKED}@{MAIN}"}
    return _variables(event, MAIN, **who, **workflow, **changes)


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
        "inputs": {"sha": HEAD, "base": "main"},
        "ref": MAIN,
        "repository": _repository(),
        "sender": _sender(),
        "workflow": ASKED,
    }
    return Started(_asked("workflow_dispatch", "maintainer"), payload)


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


def _pull_request(author: str, *, of_fork: bool) -> dict[str, Any]:
    whose, number = (f"{author}/arm", 666) if of_fork else (REPOSITORY, NUMBER)
    owner = whose.partition("/")[0]
    return {
        "id": 1001,
        "number": 13,
        "state": "open",
        "locked": False,
        "title": "Typo",
        "user": _sender(author),
        "body": None,
        "merged_at": None,
        "labels": [],
        "draft": False,
        "head": {
            "label": f"{owner}:steal",
            "ref": "steal",
            "sha": HEAD,
            "user": _sender(owner),
            "repo": _repository(whose, number),
        },
        "base": {
            "label": "arm-makers:main",
            "ref": "main",
            "sha": BASE_SHA,
            "user": _sender("arm-makers"),
            "repo": _repository(),
        },
        "author_association": "CONTRIBUTOR",
        "merged": False,
    }


def fork_pull_request() -> Started:
    """A pull request of an unknown user, whose branch has its own workflow."""
    payload = {
        "action": "opened",
        "number": 13,
        "pull_request": _pull_request("stranger", of_fork=True),
        "repository": _repository(),
        "sender": _sender("stranger"),
    }
    variables = _variables(
        "pull_request",
        "refs/pull/13/merge",
        GITHUB_ACTOR="stranger",
        GITHUB_TRIGGERING_ACTOR="stranger",
        GITHUB_BASE_REF="main",
        GITHUB_HEAD_REF="steal",
        GITHUB_REF_PROTECTED="false",
        GITHUB_WORKFLOW_REF=f"{REPOSITORY}/.github/workflows/steal.yml@refs/pull/13/merge",
    )
    return Started(variables, payload)


def pull_request_target(
    action: str = "opened", *, sender: str = "maintainer", author: str = "maintainer", of_fork: bool = False
) -> Started:
    """Somebody's action on a pull request, which started the default branch's workflow."""
    payload = {
        "action": action,
        "number": 13,
        "pull_request": _pull_request(author, of_fork=of_fork),
        "repository": _repository(),
        "organization": {"login": "arm-makers", "id": 1},
        "sender": _sender(sender),
        **_OF_ACTION.get(action, {}),
    }
    variables = _asked("pull_request_target", sender, GITHUB_BASE_REF="main", GITHUB_HEAD_REF="steal")
    return Started(variables, payload)


_OF_ACTION: dict[str, dict[str, Any]] = {
    "synchronize": {"before": "7d" * 20, "after": HEAD},
    "edited": {"changes": {"base": {"ref": {"from": "dev"}, "sha": {"from": "7d" * 20}}}},
    "labeled": {"label": {"id": 5, "name": "ldos", "color": "ededed", "default": False, "description": None}},
}


def maintainers_word(body: str = f"/ldos {HEAD}", *, sender: str = "maintainer", action: str = "created") -> Started:
    """A comment on an unknown user's pull request, which started the default branch's workflow."""
    written = "2026-05-15T15:20:21Z"
    comment = {
        "id": 492700400,
        "user": _sender(sender),
        "created_at": written,
        "updated_at": written,
        "author_association": "MEMBER",
        "body": body,
        "performed_via_github_app": None,
    }
    issue = {
        "id": 444500041,
        "number": 13,
        "title": "Typo",
        "user": _sender("stranger"),
        "state": "open",
        "locked": False,
        "comments": 0,
        "pull_request": {"url": f"https://api.github.com/repos/{REPOSITORY}/pulls/13", "merged_at": None},
    }
    payload = {
        "action": action,
        "issue": issue,
        "comment": comment,
        "repository": _repository(),
        "organization": {"login": "arm-makers", "id": 1},
        "sender": _sender(sender),
    }
    return Started(_asked("issue_comment", sender), payload)


def workflow_run() -> Started:
    """After an untrusted pull request: of the main branch, with its rights, recognisable only by its name."""
    run = {"id": 99, "name": "Check", "event": "pull_request", "head_branch": "steal", "head_sha": BASE_SHA}
    payload = {
        "action": "completed",
        "workflow_run": {**run, "conclusion": "success", "head_repository": _repository("stranger/arm", 666)},
        "workflow": {"id": 5, "name": "Check", "path": ".github/workflows/check.yml"},
        "repository": _repository(),
        "sender": _sender("stranger"),
    }
    return Started(_variables("workflow_run", MAIN, GITHUB_ACTOR="stranger"), payload)


def schedule() -> Started:
    """A clock's."""
    payload = {"schedule": "17 2 * * *", "workflow": NIGHT, "repository": _repository()}
    return Started(_variables("schedule", MAIN), payload)
