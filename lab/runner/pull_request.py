"""Pull requests from branches of this repository: what is done to one can be a maintainer's word on its head.

Reference: GitHub's "Webhook events and payloads", ``pull_request``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lab.runner.job import COMMIT, Job, at
from lab.runner.refusal import Refused, quoted

LABEL: Final = "ldos"
"""By it, somebody on the allow-list asks for a measurement, whoever the author is."""


def read_pull_request(job: Job, payload: Mapping[str, Any]) -> tuple[str, str | None]:
    """The commit at its head, and its author where that must be somebody on the allow-list, too.

    The payload names the author and who acted now, not who pushed the head.

    Raises:
        Refused: the request is closed or a fork's, or what was done to it asks for no measurement.
    """
    action, request = at(payload, "action"), at(payload, "pull_request")
    _require_action(action, payload)
    if at(request, "state") != "open":
        raise Refused("the pull request is not open")
    _require_own_branches(job, request)
    head = at(request, "head", "sha")
    if not isinstance(head, str) or COMMIT.fullmatch(head) is None:
        raise Refused("the pull request's head is no whole commit")
    if action == "synchronize" and at(payload, "after") != head:
        raise Refused("the pull request's head is another commit than was pushed")
    return head, None if action == "labeled" else at(request, "user", "login") or ""


def _require_action(action: object, payload: Mapping[str, Any]) -> None:
    match action:
        case "opened" | "reopened" | "synchronize":
            return
        case "edited":
            if at(payload, "changes", "base") is None:
                raise Refused("only the words of the pull request were edited, not its base")
        case "labeled":
            if at(payload, "label", "name") != LABEL:
                raise Refused(f"only the label {LABEL} asks for a measurement")
        case _:
            raise Refused(f"no measurement is for the action {quoted(action)} of a pull request")


def _require_own_branches(job: Job, request: Mapping[str, Any]) -> None:
    if _repository(request, "base") != (job.repository, job.repository_id):
        raise Refused("payload and variables disagree on the repository that the pull request is for")
    if _repository(request, "head") != (job.repository, job.repository_id):
        fork = quoted(at(request, "head", "repo", "full_name")) if at(request, "head", "repo") else "that is gone"
        raise Refused(f"the pull request is from a fork ({fork}): it needs a maintainer's comment /ldos SHA")
    if (at(request, "head", "ref"), at(request, "base", "ref")) != (job.head_ref, job.base_ref):
        raise Refused(f"payload and variables disagree on the branches {quoted(job.head_ref)}, {quoted(job.base_ref)}")


def _repository(request: Mapping[str, Any], side: str) -> tuple[object, object]:
    return at(request, side, "repo", "full_name"), at(request, side, "repo", "id")
