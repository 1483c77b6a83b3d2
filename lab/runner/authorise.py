"""Whether a job may run here: allow-list, variables and payload have to agree, each with the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from lab.runner.allow_list import DISPATCH, EVENTS, MERGE_GROUP, PUSH, AllowList, Rule
from lab.runner.job import COMMIT, Job, at
from lab.runner.refusal import Refused, quoted

_OF_OTHER_EVENTS: Final = ("pull_request", "issue", "comment", "workflow_run", "review", "discussion", "client_payload")


def authorise(job: Job, payload: Mapping[str, Any], allowed: AllowList) -> None:
    """Returns if the job may run.

    Raises:
        Refused: why not.
    """
    if job.server_url != allowed.server_url:
        raise Refused(f"the job comes from {quoted(job.server_url)}, not from {allowed.server_url}")
    if job.event not in EVENTS:
        raise Refused(f"no job of the event {quoted(job.event)} may run here")
    _require_same_repository(job, payload)
    _require_no_other_event(payload)
    branch = _CHECKS[job.event](job, payload)
    _require_rule(job, payload, allowed.rules, branch)
    if job.workflow_sha != job.sha:
        raise Refused("the workflow was taken from another commit than it runs for")


def _require_same_repository(job: Job, payload: Mapping[str, Any]) -> None:
    if at(payload, "repository", "full_name") != job.repository:
        name = quoted(at(payload, "repository", "full_name"))
        raise Refused(f"the payload is of the repository {name}, the job of {quoted(job.repository)}")
    if at(payload, "repository", "id") != job.repository_id:
        raise Refused("payload and variables give the repository different numbers")


def _require_no_other_event(payload: Mapping[str, Any]) -> None:
    found = [name for name in _OF_OTHER_EVENTS if name in payload]
    if found:
        raise Refused(f"the payload is one of another event: it has {', '.join(found)}")


def _check_push(job: Job, payload: Mapping[str, Any]) -> str:
    if at(payload, "ref") != job.ref or at(payload, "after") != job.sha:
        raise Refused(f"payload and variables disagree on what was pushed to {quoted(job.ref)}")
    if at(payload, "deleted") is not False:
        raise Refused("the push deleted its branch")
    return _protected(job)


def _check_merge_group(job: Job, payload: Mapping[str, Any]) -> str:
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
    return base


def _check_dispatch(job: Job, payload: Mapping[str, Any]) -> str:
    if at(payload, "ref") != job.ref:
        raise Refused(f"payload and variables disagree on the branch {quoted(job.ref)}")
    if job.workflow_ref != f"{job.repository}/{at(payload, 'workflow')}@{job.ref}":
        raise Refused(f"payload and variables disagree on the workflow {quoted(job.workflow_ref)}")
    if at(payload, "sender", "login") != job.actor:
        raise Refused("payload and variables disagree on who started the job")
    return _protected(job)


_CHECKS: Final[Mapping[str, Callable[[Job, Mapping[str, Any]], str]]] = {
    PUSH: _check_push,
    MERGE_GROUP: _check_merge_group,
    DISPATCH: _check_dispatch,
}
"""By event: requires that payload and variables agree, and gives the branch that counts."""


def _protected(job: Job) -> str:
    if not job.is_protected:
        raise Refused(f"the branch {quoted(job.ref)} is not protected")
    return job.ref


def _require_rule(job: Job, payload: Mapping[str, Any], rules: tuple[Rule, ...], branch: str) -> None:
    """Narrows the rules down by one condition after the other; where none is left, that is the reason."""
    left = list(rules)
    for keeps, reason in (
        (lambda rule: rule.repository == job.repository, f"the repository {quoted(job.repository)} is not allowed"),
        (lambda rule: rule.repository_id == job.repository_id, f"another repository is called {job.repository} now"),
        (lambda rule: rule.event == job.event, f"the event {job.event} is not allowed in {job.repository}"),
        (lambda rule: branch in rule.refs, f"the branch {quoted(branch)} is not allowed for the event {job.event}"),
        (lambda rule: _has_workflow(rule, job), f"the workflow {quoted(job.workflow_ref)} is not allowed"),
        (lambda rule: _has_actor(rule, job), f"{quoted(job.triggering_actor)} may not start jobs here by hand"),
        (lambda rule: _has_commit(rule, payload), "no commit was named: give its 40 hexadecimal digits"),
        (lambda rule: _is_own(rule, job, payload), f"only the commit that {quoted(branch)} is at may be started so"),
        (lambda rule: _has_inputs(rule, payload), "an input has a value that the allow-list does not name"),
    ):
        left = [rule for rule in left if keeps(rule)]
        if not left:
            raise Refused(reason)


def _has_workflow(rule: Rule, job: Job) -> bool:
    return job.workflow_ref in {f"{rule.repository}/{workflow}@{job.ref}" for workflow in rule.workflows}


def _has_actor(rule: Rule, job: Job) -> bool:
    """Both who started it first and who started it again."""
    return rule.event != DISPATCH or rule.own_commit or {job.actor, job.triggering_actor} <= {*rule.actors}


def _has_commit(rule: Rule, payload: Mapping[str, Any]) -> bool:
    """Only a start by hand names one."""
    if rule.event != DISPATCH:
        return True
    commit = at(payload, "inputs", rule.sha_input)
    return isinstance(commit, str) and COMMIT.fullmatch(commit) is not None


def _is_own(rule: Rule, job: Job, payload: Mapping[str, Any]) -> bool:
    return not rule.own_commit or at(payload, "inputs", rule.sha_input) == job.sha


def _has_inputs(rule: Rule, payload: Mapping[str, Any]) -> bool:
    """An input may name code as well: whoever may not name a commit gives only what was foreseen, or nothing."""
    if not rule.own_commit:
        return True
    others = {name: value for name, value in at(payload, "inputs").items() if name != rule.sha_input}
    return all(value in (None, "") or value in rule.inputs.get(name, ()) for name, value in others.items())
