"""Decides on a job: allow-list, variables and payload have to agree, each with the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.runner.allow_list import EVENTS, MERGE_GROUP, AllowList, Rule
from lab.runner.claim import Claim, read_claim
from lab.runner.job import COMMIT, Job, at
from lab.runner.refusal import Refused, quoted


def authorise(job: Job, payload: Mapping[str, Any], allowed: AllowList) -> str:
    """The commit that the job may measure.

    Raises:
        Refused: why it may not run.
    """
    if job.server_url != allowed.server_url:
        raise Refused(f"the job comes from {quoted(job.server_url)}, not from {allowed.server_url}")
    if job.event not in EVENTS:
        raise Refused(f"no job of the event {quoted(job.event)} may run here")
    _require_same_repository(job, payload)
    claim = read_claim(job, payload)
    rule = _find_rule(job, payload, allowed.rules, claim)
    if job.workflow_sha != job.sha:
        raise Refused("the workflow was taken from another commit than it runs for")
    return _commit(rule, payload, claim)


def _require_same_repository(job: Job, payload: Mapping[str, Any]) -> None:
    if at(payload, "repository", "full_name") != job.repository:
        name = quoted(at(payload, "repository", "full_name"))
        raise Refused(f"the payload is of the repository {name}, the job of {quoted(job.repository)}")
    if at(payload, "repository", "id") != job.repository_id:
        raise Refused("payload and variables give the repository different numbers")


def _find_rule(job: Job, payload: Mapping[str, Any], rules: tuple[Rule, ...], claim: Claim) -> Rule:
    """Narrows the rules down by one condition after the other; where none is left, that is the reason."""
    left = list(rules)
    for keeps, reason in (
        (lambda rule: rule.repository == job.repository, f"the repository {quoted(job.repository)} is not allowed"),
        (lambda rule: rule.repository_id == job.repository_id, f"another repository is called {job.repository} now"),
        (lambda rule: rule.event == job.event, f"the event {job.event} is not allowed in {job.repository}"),
        (
            lambda rule: claim.branch in rule.refs,
            f"the branch {quoted(claim.branch)} is not allowed for the event {job.event}",
        ),
        (lambda rule: _is_protected(rule, job), f"the branch {quoted(job.ref)} is not protected"),
        (lambda rule: _has_workflow(rule, job), f"the workflow {quoted(job.workflow_ref)} is not allowed"),
        (lambda rule: _has_actor(rule, job), f"{_starters(job)} may not start jobs here"),
        (lambda rule: _has_author(rule, claim), _needs_word(claim)),
        (lambda rule: _commit(rule, payload, claim), "no commit was named: give its 40 hexadecimal digits"),
        (lambda rule: _is_own(rule, job, payload), f"only the commit that {quoted(job.ref)} is at may be started so"),
        (lambda rule: _has_inputs(rule, payload), "an input has a value that the allow-list does not name"),
    ):
        left = [rule for rule in left if keeps(rule)]
        if not left:
            raise Refused(reason)
    return left[0]


def _is_protected(rule: Rule, job: Job) -> bool:
    """The branch of a merge group is GitHub's own, and has no protection."""
    return rule.unprotected or rule.event == MERGE_GROUP or job.is_protected


def _has_workflow(rule: Rule, job: Job) -> bool:
    return job.workflow_ref in {f"{rule.repository}/{workflow}@{job.ref}" for workflow in rule.workflows}


def _has_actor(rule: Rule, job: Job) -> bool:
    """Both who started it first and who started it again, of the events that somebody must be named for."""
    return not rule.actors or {job.actor, job.triggering_actor} <= {*rule.actors}


def _starters(job: Job) -> str:
    if job.actor == job.triggering_actor:
        return quoted(job.actor)
    return f"{quoted(job.actor)}, started again by {quoted(job.triggering_actor)},"


def _has_author(rule: Rule, claim: Claim) -> bool:
    return claim.author is None or claim.author in rule.actors


def _needs_word(claim: Claim) -> str:
    return f"the pull request is by {quoted(claim.author)}: it needs a maintainer's label ldos or comment /ldos SHA"


def _commit(rule: Rule, payload: Mapping[str, Any], claim: Claim) -> str:
    """The commit to be measured, of a start by hand the one that was typed; empty where there is none."""
    commit = at(payload, "inputs", rule.sha_input) if claim.commit is None else claim.commit
    return commit if isinstance(commit, str) and COMMIT.fullmatch(commit) else ""


def _is_own(rule: Rule, job: Job, payload: Mapping[str, Any]) -> bool:
    return not rule.own_commit or at(payload, "inputs", rule.sha_input) == job.sha


def _has_inputs(rule: Rule, payload: Mapping[str, Any]) -> bool:
    """An input may name code as well: whoever may not name a commit gives only what was foreseen, or nothing."""
    if not rule.own_commit:
        return True
    others = {name: value for name, value in at(payload, "inputs").items() if name != rule.sha_input}
    return all(value in (None, "") or value in rule.inputs.get(name, ()) for name, value in others.items())
