"""Claims of events: what each starts, where its payload agrees with the job's variables.

Reference: GitHub's "Events that trigger workflows", "Webhook events and payloads".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lab.runner.allow_list import COMMENT, DISPATCH, MERGE_GROUP, PUSH, REQUEST
from lab.runner.job import Job, at
from lab.runner.pull_request import read_pull_request
from lab.runner.refusal import Refused, quoted
from lab.runner.word import read_word

_OF_EVENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "pull_request": (REQUEST,),
    "issue": (COMMENT,),
    "comment": (COMMENT,),
    "merge_group": (MERGE_GROUP,),
    **dict.fromkeys(("workflow_run", "review", "discussion", "client_payload"), ()),
}
"""Keys of a payload that tell its event, and the events that may have them."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Attributes:
    branch: full name of the branch that a rule must name.
    commit: that is to be measured; of a start by hand, the rule says which input holds it.
    author: who opened the pull request, where that must be somebody on the allow-list as well.
    """

    branch: str
    commit: str | None
    author: str | None = None


def read_claim(job: Job, payload: Mapping[str, Any]) -> Claim:
    """The claim of a job's event.

    Raises:
        Refused: the payload is of another event, disagrees with the variables, or starts no measurement.
    """
    found = [name for name, events in _OF_EVENTS.items() if name in payload and job.event not in events]
    if found:
        raise Refused(f"the payload is one of another event: it has {', '.join(found)}")
    return _CLAIMS[job.event](job, payload)


def _claim_push(job: Job, payload: Mapping[str, Any]) -> Claim:
    if at(payload, "ref") != job.ref or at(payload, "after") != job.sha:
        raise Refused(f"payload and variables disagree on what was pushed to {quoted(job.ref)}")
    if at(payload, "deleted") is not False:
        raise Refused("the push deleted its branch")
    return Claim(branch=job.ref, commit=job.sha)


def _claim_merge_group(job: Job, payload: Mapping[str, Any]) -> Claim:
    """GitHub makes the group's branch, and only for a branch whose rules ask for a queue."""
    group = at(payload, "merge_group")
    if at(payload, "action") != "checks_requested" or not isinstance(group, dict):
        raise Refused("the payload is not one of a merge group whose checks are requested")
    if group.get("head_ref") != job.ref or group.get("head_sha") != job.sha:
        raise Refused(f"payload and variables disagree on the merge group {quoted(job.ref)}")
    base = group.get("base_ref")
    if not isinstance(base, str) or not base.startswith("refs/heads/"):
        raise Refused(f"the merge group is for {quoted(base)}, which is no branch")
    if not job.ref.startswith(f"refs/heads/gh-readonly-queue/{base.removeprefix('refs/heads/')}/pr-"):
        raise Refused(f"{quoted(job.ref)} is no merge group for {quoted(base)}")
    return Claim(branch=base, commit=job.sha)


def _claim_dispatch(job: Job, payload: Mapping[str, Any]) -> Claim:
    if at(payload, "ref") != job.ref:
        raise Refused(f"payload and variables disagree on the branch {quoted(job.ref)}")
    if job.workflow_ref != f"{job.repository}/{at(payload, 'workflow')}@{job.ref}":
        raise Refused(f"payload and variables disagree on the workflow {quoted(job.workflow_ref)}")
    _require_sender(job, payload)
    return Claim(branch=job.ref, commit=None)


def _claim_request(job: Job, payload: Mapping[str, Any]) -> Claim:
    _require_default_branch(job, payload)
    _require_sender(job, payload)
    head, author = read_pull_request(job, payload)
    return Claim(branch=job.ref, commit=head, author=author)


def _claim_comment(job: Job, payload: Mapping[str, Any]) -> Claim:
    """A comment's payload has no head: the commit is in its author's own words."""
    issue, comment = at(payload, "issue"), at(payload, "comment")
    _require_default_branch(job, payload)
    _require_sender(job, payload)
    if at(payload, "action") != "created" or at(comment, "created_at") != at(comment, "updated_at"):
        raise Refused("only a new comment counts, not one that was edited or deleted: write another")
    if not isinstance(at(issue, "pull_request"), dict) or at(issue, "state") != "open":
        raise Refused("the comment is not below an open pull request")
    if at(comment, "user", "login") != job.actor or at(comment, "performed_via_github_app") is not None:
        raise Refused(f"{quoted(job.actor)} did not write the comment, or an app did in that name")
    body = at(comment, "body")
    return Claim(branch=job.ref, commit=read_word(body if isinstance(body, str) else "").commit)


def _require_default_branch(job: Job, payload: Mapping[str, Any]) -> None:
    if job.ref != f"refs/heads/{at(payload, 'repository', 'default_branch')}":
        raise Refused(f"the workflow was taken from {quoted(job.ref)}, not from the default branch")


def _require_sender(job: Job, payload: Mapping[str, Any]) -> None:
    if at(payload, "sender", "login") != job.actor:
        raise Refused("payload and variables disagree on who started the job")


_CLAIMS: Final[Mapping[str, Callable[[Job, Mapping[str, Any]], Claim]]] = {
    PUSH: _claim_push,
    MERGE_GROUP: _claim_merge_group,
    DISPATCH: _claim_dispatch,
    REQUEST: _claim_request,
    COMMENT: _claim_comment,
}
