"""Jobs that the hook permits: every kind of event that reaches a runner, and every way to forge one."""

from __future__ import annotations

import pytest

from lab.runner.allow_list import EVENTS
from tests.builders.runner import (
    ASKED,
    GATE,
    MAIN,
    NIGHT,
    QUEUED,
    REPOSITORY,
    SHA,
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

OTHER = "5b" * 20


@pytest.mark.parametrize(
    "started", [push(), merge_group(), dispatch(), nightly()], ids=["push", "queue", "hand", "night"]
)
def test_permitted_job_begins(refusal, started):
    assert refusal(started) == ""


@pytest.mark.parametrize("event", ["pull_request", "pull_request_review", "pull_request_review_comment"])
def test_pull_request_with_its_own_workflow_is_refused(refusal, event):
    started = fork_pull_request().changed(GITHUB_EVENT_NAME=event)
    assert refusal(started) == "GITHUB_HEAD_REF is set: this job belongs to a pull request"
    without = started.changed(GITHUB_HEAD_REF="", GITHUB_BASE_REF="")
    assert refusal(without) == f"no job of the event '{event}' may run here"


@pytest.mark.parametrize("started", [workflow_run(), schedule()], ids=["run", "clock"])
def test_main_branch_job_of_an_unknown_user_or_schedule_is_refused(refusal, started):
    """To the runner, all of these have the main branch, its workflow and its rights."""
    assert refusal(started) == f"no job of the event '{started.variables['GITHUB_EVENT_NAME']}' may run here"
    for event in EVENTS:
        assert refusal(started.changed(GITHUB_EVENT_NAME=event))


ALLOWED = [push(), merge_group(), dispatch(), pull_request_target(), maintainers_word()]


@pytest.mark.parametrize("started", ALLOWED, ids=EVENTS)
def test_event_with_another_events_name_is_refused(refusal, started):
    named = started.variables["GITHUB_EVENT_NAME"]
    assert refusal(started) == ""
    for event in {*EVENTS} - {named}:
        assert refusal(started.changed(GITHUB_EVENT_NAME=event)), event


@pytest.mark.parametrize(
    "event",
    [
        "pull_request",
        "pull_request_review",
        "pull_request_review_comment",
        "workflow_run",
        "schedule",
        "repository_dispatch",
        "quake",
    ],
)
@pytest.mark.parametrize("started", ALLOWED, ids=EVENTS)
def test_other_events_are_refused(refusal, started, event):
    without = started.changed(GITHUB_EVENT_NAME=event, GITHUB_HEAD_REF="", GITHUB_BASE_REF="")
    assert refusal(without) == f"no job of the event '{event}' may run here"


@pytest.mark.parametrize(
    ("started", "reason"),
    [
        (
            push().changed(GITHUB_REPOSITORY="stranger/arm"),
            "the payload is of the repository 'arm-makers/arm', the job",
        ),
        (push().changed({"repository.full_name": "stranger/arm"}), "the payload is of the repository 'stranger/arm'"),
        (
            push().changed({"repository.full_name": "stranger/arm"}, GITHUB_REPOSITORY="stranger/arm"),
            "the repository 'stranger/arm' is not allowed",
        ),
        (push().changed({"repository": None}), "the payload is of the repository '<NoneType>'"),
        (push().changed({"repository.id": 666}), "payload and variables give the repository different numbers"),
        (
            push().changed({"repository.id": 666}, GITHUB_REPOSITORY_ID="666"),
            "another repository is called arm-makers/arm now",
        ),
        (push().changed(GITHUB_SERVER_URL="https://evil.example"), "the job comes from 'https\\x3a//evil.example'"),
    ],
)
def test_another_repository_is_refused(refusal, started, reason):
    assert refusal(started).startswith(reason)


@pytest.mark.parametrize(
    ("started", "shown"),
    [
        (push().changed(GITHUB_WORKFLOW_REF=f"{REPOSITORY}/.github/workflows/steal.yml@{MAIN}"), "steal.yml"),
        (push().changed(GITHUB_WORKFLOW_REF=f"stranger/arm/{GATE}@{MAIN}"), "stranger/arm"),
        (push().changed(GITHUB_WORKFLOW_REF=f"{REPOSITORY}/{GATE}@refs/heads/topic"), "topic"),
        (push().changed(GITHUB_WORKFLOW_REF=f"{REPOSITORY}/{GATE}@{MAIN}@{MAIN}"), "main@refs"),
        (push().changed(GITHUB_WORKFLOW_REF=f"{REPOSITORY}/{GATE}"), "gate.yml"),
        (push().changed(GITHUB_WORKFLOW_REF=f"{REPOSITORY}/../../{GATE}@{MAIN}"), ".."),
        (merge_group().changed(GITHUB_WORKFLOW_REF=f"{REPOSITORY}/{GATE}@{MAIN}"), "main"),
        (merge_group().changed(GITHUB_WORKFLOW_REF=f"{REPOSITORY}/.github/workflows/baseline.yml@{QUEUED}"), "base"),
    ],
)
def test_another_workflow_is_refused(refusal, started, shown):
    reason = refusal(started)
    assert reason.startswith("the workflow '")
    assert reason.endswith("' is not allowed")
    assert shown in reason


def test_workflow_of_another_commit_is_refused(refusal):
    assert "from another commit" in refusal(push().changed(GITHUB_WORKFLOW_SHA=OTHER))


@pytest.mark.parametrize(
    ("started", "reason"),
    [
        (push().changed({"ref": "refs/heads/x"}), "payload and variables disagree on what was pushed"),
        (push().changed({"after": OTHER}), "payload and variables disagree on what was pushed"),
        (push().changed({"deleted": True}), "the push deleted its branch"),
        (push().changed({"deleted": "no"}), "the push deleted its branch"),
        (push().changed(GITHUB_REF_PROTECTED="false"), "the branch 'refs/heads/main' is not protected"),
        (push().changed({"pull_request": {}}), "the payload is one of another event: it has pull_request"),
        (push().changed({"workflow_run": {}, "comment": {}}), "the payload is one of another event: it has comment, w"),
        (
            push().changed(
                {"ref": "refs/heads/topic"},
                GITHUB_REF="refs/heads/topic",
                GITHUB_WORKFLOW_REF=f"{REPOSITORY}/{GATE}@refs/heads/topic",
            ),
            "the branch 'refs/heads/topic' is not allowed for the event push",
        ),
        (
            push().changed({"ref": "refs/tags/main"}, GITHUB_REF="refs/tags/main"),
            "the branch 'refs/tags/main' is not allowed",
        ),
    ],
)
def test_inconsistent_push_is_refused(refusal, started, reason):
    assert refusal(started).startswith(reason)


@pytest.mark.parametrize(
    ("started", "reason"),
    [
        (merge_group().changed({"action": "destroyed"}), "the payload is not one of a merge group whose"),
        (merge_group().changed({"merge_group": "x"}), "the payload is not one of a merge group whose"),
        (merge_group().changed({"merge_group.head_sha": OTHER}), "payload and variables disagree on the merge group"),
        (merge_group().changed({"merge_group.head_ref": MAIN}), "payload and variables disagree on the merge group"),
        (merge_group().changed({"merge_group.base_ref": None}), "the merge group is for '<NoneType>'"),
        (merge_group().changed({"merge_group.base_ref": "main"}), "the merge group is for 'main', which is no branch"),
        (merge_group().changed({"merge_group.base_ref": "refs/heads/x"}), "'refs/heads/gh-readonly-queue/main/pr-12-"),
        (
            merge_group().changed({"merge_group.head_ref": "refs/heads/topic"}, GITHUB_REF="refs/heads/topic"),
            "'refs/heads/topic' is no merge group for",
        ),
        (
            merge_group().changed(
                {
                    "merge_group.base_ref": "refs/heads/dev",
                    "merge_group.head_ref": "refs/heads/gh-readonly-queue/dev/pr-1-x",
                },
                GITHUB_REF="refs/heads/gh-readonly-queue/dev/pr-1-x",
            ),
            "the branch 'refs/heads/dev' is not allowed for the event merge_group",
        ),
    ],
)
def test_inconsistent_merge_group_is_refused(refusal, started, reason):
    assert refusal(started).startswith(reason)


@pytest.mark.parametrize(
    "sha",
    [
        None,
        "",
        "main",
        SHA[:12],
        SHA.upper(),
        f"{SHA}0",
        f"{SHA}\n",
        f" {SHA}",
        f"{SHA[:-1]}g",
        7,
        [SHA],
        "$(id)",
        "０" * 40,
    ],
)
def test_manual_start_needs_a_full_commit(refusal, sha):
    assert refusal(dispatch().changed({"inputs.sha": sha})).startswith("no commit was named")


@pytest.mark.parametrize("inputs", [None, {}, [], "sha"])
def test_manual_start_without_inputs(refusal, inputs):
    assert refusal(dispatch().changed({"inputs": inputs})).startswith("no commit was named")


@pytest.mark.parametrize(
    ("started", "reason"),
    [
        (dispatch().changed({"ref": "refs/heads/topic"}), "payload and variables disagree on the branch"),
        (dispatch().changed({"workflow": ".github/workflows/steal.yml"}), "payload and variables disagree on the work"),
        (dispatch().changed({"sender.login": "stranger"}), "payload and variables disagree on who started"),
        (dispatch().changed(GITHUB_TRIGGERING_ACTOR="stranger"), "'maintainer', started again by 'stranger', may"),
        (
            dispatch().changed({"sender.login": "stranger"}, GITHUB_ACTOR="stranger"),
            "'stranger', started again by 'maintainer', may not start jobs here",
        ),
        (dispatch().changed(GITHUB_REF_PROTECTED="False"), "the branch 'refs/heads/main' is not protected"),
        (
            dispatch().changed(
                {"workflow": ".github/workflows/baseline.yml"},
                GITHUB_WORKFLOW_REF=f"{REPOSITORY}/.github/workflows/baseline.yml@{MAIN}",
            ),
            "the workflow 'arm-makers/arm/.github/workflows/baseline.yml@refs/heads/main' is not allowed",
        ),
    ],
)
def test_inconsistent_manual_start_is_refused(refusal, started, reason):
    assert refusal(started).startswith(reason)


EVIL = "e5" * 20


@pytest.mark.parametrize(
    ("started", "reason"),
    [
        (nightly().changed({"inputs.sha": EVIL}), "only the commit that 'refs/heads/main' is at may be started so"),
        (nightly().changed({"inputs.base": EVIL}), "an input has a value that the allow-list does not name"),
        (nightly().changed({"inputs.base": [EVIL]}), "an input has a value that the allow-list does not name"),
        (nightly().changed({"inputs.what": "sweep; id"}), "an input has a value that the allow-list does not name"),
        (nightly().changed({"inputs.sha": None}), "no commit was named"),
        (nightly().changed({"inputs.sha": EVIL}, GITHUB_SHA=EVIL), "the workflow was taken from another commit"),
        (
            nightly().changed({"workflow": ASKED}, GITHUB_WORKFLOW_REF=f"{REPOSITORY}/{ASKED}@{MAIN}"),
            "'github-actions[bot]' may not start jobs here".replace("[bot]", r"\x5bbot\x5d"),
        ),
    ],
)
def test_start_open_to_everybody_cannot_choose_code(refusal, started, reason):
    """Whoever may push a branch may push a workflow that starts others as GitHub's bot."""
    assert refusal(started).startswith(reason)


def test_foreign_commit_is_refused_if_only_the_branchs_are_allowed(refusal):
    started = nightly().changed(
        {"inputs.sha": EVIL, "sender.login": "maintainer"},
        GITHUB_ACTOR="maintainer",
        GITHUB_TRIGGERING_ACTOR="maintainer",
    )
    assert refusal(started).startswith("only the commit that")
    assert NIGHT in started.variables["GITHUB_WORKFLOW_REF"]


def test_renamed_repository_needs_a_new_entry(refusal):
    started = push().changed({"repository.full_name": "arm-makers/limb"}, GITHUB_REPOSITORY="arm-makers/limb")
    assert refusal(started) == "the repository 'arm-makers/limb' is not allowed"


def test_call_from_another_repository_is_refused(refusal):
    """The called workflow does not count: the started one is an unknown user's."""
    own = ".github/workflows/own.yml"
    started = push().changed(
        {"repository.full_name": "stranger/arm", "repository.id": 666},
        GITHUB_REPOSITORY="stranger/arm",
        GITHUB_REPOSITORY_ID="666",
        GITHUB_WORKFLOW_REF=f"stranger/arm/{own}@{MAIN}",
        GITHUB_JOB_WORKFLOW_REF=f"{REPOSITORY}/{GATE}@{MAIN}",
    )
    assert refusal(started) == "the repository 'stranger/arm' is not allowed"


def test_call_from_another_own_workflow_is_refused(refusal):
    """A new workflow that calls an allowed one with other inputs."""
    started = push().changed(
        GITHUB_WORKFLOW_REF=f"{REPOSITORY}/.github/workflows/sly.yml@{MAIN}",
        GITHUB_JOB_WORKFLOW_REF=f"{REPOSITORY}/{GATE}@{MAIN}",
    )
    assert refusal(started).startswith("the workflow 'arm-makers/arm/.github/workflows/sly.yml@refs/heads/main' is not")


@pytest.mark.parametrize(
    "ref",
    [
        "refs/heads/Main",
        "refs/heads/main/",
        "refs/heads/main~1",
        "refs/heads//main",
        "refs/heads/main\\",
        "refs/heads/m%61in",
        "refs/heads/$(id)",
        "refs/heads/main@{0}",
        "refs/heads/::error::x",
        "refs/pull/1/merge",
        "main",
        "HEAD",
    ],
)
def test_similar_ref_is_refused(refusal, ref):
    started = push().changed({"ref": ref}, GITHUB_REF=ref, GITHUB_WORKFLOW_REF=f"{REPOSITORY}/{GATE}@{ref}")
    reason = refusal(started)
    assert reason.startswith("the branch '")
    assert "is not allowed for the event push" in reason
    assert "::" not in reason


def test_a_branch_that_was_deleted_has_no_commit(refusal):
    zero = "0" * 40
    started = push().changed(
        {"after": zero, "deleted": True, "head_commit": None}, GITHUB_SHA=zero, GITHUB_WORKFLOW_SHA=zero
    )
    assert refusal(started) == "the push deleted its branch"


def test_manually_pushed_queue_branch_is_refused(refusal):
    started = push().changed({"ref": QUEUED}, GITHUB_REF=QUEUED, GITHUB_WORKFLOW_REF=f"{REPOSITORY}/{GATE}@{QUEUED}")
    assert "is not allowed for the event push" in refusal(started)


NEEDED = (
    "GITHUB_ACTOR",
    "GITHUB_EVENT_NAME",
    "GITHUB_REF",
    "GITHUB_REF_PROTECTED",
    "GITHUB_REPOSITORY",
    "GITHUB_REPOSITORY_ID",
    "GITHUB_SERVER_URL",
    "GITHUB_SHA",
    "GITHUB_TRIGGERING_ACTOR",
    "GITHUB_WORKFLOW_REF",
    "GITHUB_WORKFLOW_SHA",
)


@pytest.mark.parametrize("name", NEEDED)
def test_missing_values_are_refused(refusal, name):
    assert refusal(push().changed(**{name: None})) == f"{name} is not set"
    assert refusal(push().changed(**{name: ""})) == f"{name} is not set"


@pytest.mark.parametrize("name", NEEDED)
@pytest.mark.parametrize("value", ["x\n::error::y", "x" * 1001, "\x1b[2J", "é", "\udcff", " ", "a  b"])
def test_impossible_variables_are_refused(refusal, name, value):
    reason = refusal(push().changed(**{name: value}))
    assert reason.startswith(f"{name} cannot be '")
    assert reason.isascii()
    assert reason.isprintable()
    assert "::" not in reason


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_SHA", "main"),
        ("GITHUB_SHA", SHA[:12]),
        ("GITHUB_WORKFLOW_SHA", SHA.upper()),
        ("GITHUB_REPOSITORY_ID", "4711x"),
        ("GITHUB_REPOSITORY_ID", "-1"),
    ],
)
def test_malformed_variables_are_refused(refusal, name, value):
    assert refusal(push().changed(**{name: value})) == f"{name} cannot be '{value}'"
