"""A job as the runner announces it: variables, and the payload of the event that started it.

The runner (2.336) sets the ``GITHUB_*`` variables of its own list in the environment of a job-started hook, and
none that a workflow sets with ``env:``; it writes the payload to ``_temp/_github_workflow/event.json``. Both come
from GitHub's server; the file lies where jobs can write.

Reference: actions/runner, ``JobHookProvider.cs``, ``GitHubContext.cs``, ``ScriptHandler.cs``, ``ExecutionContext.cs``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lab.runner.allow_list import REQUEST
from lab.runner.files import read_payload
from lab.runner.refusal import Refused, quoted

LARGEST_PAYLOAD: Final = 25 * 1024 * 1024
"""Bytes; GitHub sends none that is larger."""

_LONGEST_VALUE: Final = 1000
_PLAIN_VALUE: Final = re.compile(r"[\x21-\x7e]+(?: [\x21-\x7e]+)*")
COMMIT: Final = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, kw_only=True)
class Job:
    """Values of the runner's variables.

    Attributes:
        server_url: ``https://github.com``.
        repository: ``OWNER/NAME`` whose workflow runs.
        repository_id: its number.
        event: that started the workflow.
        event_path: file of its payload.
        ref: full name of the branch.
        is_protected: whether that branch is.
        sha: of the commit that the workflow runs for.
        workflow_ref: ``OWNER/NAME/PATH@REF`` of the workflow that was started, not of one that it calls.
        workflow_sha: of the commit that the workflow was taken from.
        actor: who started it first.
        triggering_actor: who started this attempt.
        head_ref: of a pull request, the name of its branch; else empty.
        base_ref: of a pull request, the name of the branch that it is for; else empty.
    """

    server_url: str
    repository: str
    repository_id: int
    event: str
    event_path: Path
    ref: str
    is_protected: bool
    sha: str
    workflow_ref: str
    workflow_sha: str
    actor: str
    triggering_actor: str
    head_ref: str = ""
    base_ref: str = ""


def read_job(environment: Mapping[str, str]) -> Job:
    """The job that is about to begin.

    Raises:
        Refused: a variable is missing or is not of its form, or belongs to a pull request whose workflow is its own.
    """
    branches = ("GITHUB_HEAD_REF", "GITHUB_BASE_REF")
    is_request = environment.get("GITHUB_EVENT_NAME") == REQUEST
    for name in () if is_request else branches:
        if environment.get(name):
            raise Refused(f"{name} is set: this job belongs to a pull request")
    head_ref, base_ref = (_variable(environment, name) if is_request else "" for name in branches)
    return Job(
        server_url=_variable(environment, "GITHUB_SERVER_URL"),
        repository=_variable(environment, "GITHUB_REPOSITORY"),
        repository_id=int(_variable(environment, "GITHUB_REPOSITORY_ID", re.compile("[0-9]{1,18}"))),
        event=_variable(environment, "GITHUB_EVENT_NAME"),
        event_path=Path(_variable(environment, "GITHUB_EVENT_PATH", re.compile("/.*"))),
        ref=_variable(environment, "GITHUB_REF"),
        is_protected=_variable(environment, "GITHUB_REF_PROTECTED").lower() == "true",
        sha=_variable(environment, "GITHUB_SHA", COMMIT),
        workflow_ref=_variable(environment, "GITHUB_WORKFLOW_REF"),
        workflow_sha=_variable(environment, "GITHUB_WORKFLOW_SHA", COMMIT),
        actor=_variable(environment, "GITHUB_ACTOR"),
        triggering_actor=_variable(environment, "GITHUB_TRIGGERING_ACTOR"),
        head_ref=head_ref,
        base_ref=base_ref,
    )


def _variable(environment: Mapping[str, str], name: str, form: re.Pattern[str] = _PLAIN_VALUE) -> str:
    value = environment.get(name, "")
    if not value:
        raise Refused(f"{name} is not set")
    if len(value) > _LONGEST_VALUE or not _PLAIN_VALUE.fullmatch(value) or not form.fullmatch(value):
        raise Refused(f"{name} cannot be {quoted(value)}")
    return value


def read_event(job: Job, *, owner: int) -> Mapping[str, Any]:
    """The payload of the job's event.

    Args:
        owner: number of the user whom the runner runs as.

    Raises:
        Refused: the file is not one that the runner wrote, or is no JSON object.
    """
    content = read_payload(job.event_path, largest=LARGEST_PAYLOAD, owner=owner)
    try:
        payload = json.loads(content.decode(), object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise Refused(f"the event's payload is no JSON: {type(error).__name__}") from None
    if not isinstance(payload, dict):
        raise Refused("the event's payload is no JSON object")
    return payload


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object that says everything once: readers differ in which of two they take."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Refused("the event's payload says something twice")
    return found


def at(payload: object, *keys: str) -> Any:
    """The value behind some keys; ``None`` where there is none."""
    found: Any = payload
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found
