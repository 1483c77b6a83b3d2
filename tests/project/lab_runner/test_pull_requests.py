"""Pull requests and comments below them: measured are those that a maintainer gave a word on, and no others."""

from __future__ import annotations

import os

import pytest

from lab.runner.main import check
from tests.builders.runner import (
    GATE,
    HEAD,
    MAIN,
    NUMBER,
    QUEUED,
    REPOSITORY,
    SHA,
    dispatch,
    maintainers_word,
    nightly,
    pull_request_target,
    push,
)
from tests.builders.words_of_maintainers import INVALID, VALID

OTHER = "5b" * 20
WORDS = [pull_request_target(), maintainers_word()]


@pytest.mark.parametrize("action", ["opened", "synchronize", "reopened", "edited", "labeled"])
def test_maintainers_branch_is_measured(refusal, action):
    assert refusal(pull_request_target(action)) == ""
    assert refusal(pull_request_target(action, sender="owner")) == ""


def test_maintainers_label_counts_for_any_branch_of_the_repository(refusal):
    assert refusal(pull_request_target("labeled", author="writer")) == ""


@pytest.mark.parametrize("action", ["opened", "synchronize", "reopened", "edited"])
def test_other_events_give_no_permission_for_a_branch(refusal, action):
    """As where a maintainer clicks on "Update branch"."""
    reason = "the pull request is by 'writer': it needs a maintainer's label ldos or comment /ldos SHA"
    assert refusal(pull_request_target(action, author="writer")) == reason


@pytest.mark.parametrize("action", ["opened", "synchronize", "reopened", "edited", "labeled"])
@pytest.mark.parametrize("author", ["maintainer", "writer"])
def test_other_users_events_give_no_permission(refusal, action, author):
    """A push of an unknown user to a maintainer's branch, or a label of a user who may only label."""
    assert refusal(pull_request_target(action, sender="writer", author=author)) == "'writer' may not start jobs here"


@pytest.mark.parametrize("action", ["opened", "synchronize", "reopened", "edited", "labeled"])
@pytest.mark.parametrize(
    ("sender", "author"), [("stranger", "stranger"), ("maintainer", "stranger"), ("owner", "owner")]
)
def test_fork_always_needs_a_comment(refusal, action, sender, author):
    reason = f"the pull request is from a fork ('{author}/arm'): it needs a maintainer's comment /ldos SHA"
    assert refusal(pull_request_target(action, sender=sender, author=author, of_fork=True)) == reason


def test_deleted_fork(refusal):
    started = pull_request_target("labeled", of_fork=True).changed({"pull_request.head.repo": None})
    assert "from a fork (that is gone): it needs a maintainer's comment" in refusal(started)


@pytest.mark.parametrize(
    "action",
    [
        "closed",
        "unlabeled",
        "assigned",
        "ready_for_review",
        "review_requested",
        "enqueued",
        "locked",
        "",
        None,
        ["opened"],
    ],
)
def test_other_pull_request_events_start_nothing(refusal, action):
    assert "no measurement is for the action" in refusal(pull_request_target().changed({"action": action}))


@pytest.mark.parametrize(
    ("started", "reason"),
    [
        (pull_request_target("labeled").changed({"label.name": "bug"}), "only the label ldos asks for a measurement"),
        (pull_request_target("labeled").changed({"label.name": "LDOS"}), "only the label ldos asks for a measurement"),
        (pull_request_target("labeled").changed({"label": None}), "only the label ldos asks for a measurement"),
        (pull_request_target("labeled").changed({"label": ["ldos"]}), "only the label ldos asks for a measurement"),
        (
            pull_request_target("edited").changed({"changes": {"title": {"from": "x"}}}),
            "only the words of the pull requ",
        ),
        (pull_request_target("edited").changed({"changes": None}), "only the words of the pull request were edited"),
        (pull_request_target().changed({"pull_request.state": "closed"}), "the pull request is not open"),
        (pull_request_target().changed({"pull_request.state": None}), "the pull request is not open"),
        (pull_request_target().changed({"pull_request": None}), "the pull request is not open"),
        (pull_request_target().changed({"pull_request": "x"}), "the pull request is not open"),
        (pull_request_target().changed({"pull_request.head": None}), "the pull request is from a fork (that is gone)"),
        (
            pull_request_target().changed({"pull_request.head.repo": "x"}),
            "the pull request is from a fork ('<NoneType>')",
        ),
        (
            pull_request_target().changed({"pull_request.head.repo.id": 666}),
            "the pull request is from a fork ('arm-make",
        ),
        (pull_request_target().changed({"pull_request.head.repo.id": str(NUMBER)}), "the pull request is from a fork"),
        (
            pull_request_target().changed({"pull_request.head.repo.full_name": "stranger/arm"}),
            "the pull request is from a fork ('stranger/arm')",
        ),
        (
            pull_request_target().changed({"pull_request.base.repo.id": 666}),
            "payload and variables disagree on the repo",
        ),
        (
            pull_request_target().changed({"pull_request.base.repo.full_name": "stranger/arm"}),
            "payload and variables disagree on the repository that the pull request is for",
        ),
        (
            pull_request_target().changed({"pull_request.base": None}),
            "payload and variables disagree on the repository",
        ),
        (
            pull_request_target().changed({"pull_request.head.ref": "x"}),
            "payload and variables disagree on the branches",
        ),
        (
            pull_request_target().changed({"pull_request.base.ref": "x"}),
            "payload and variables disagree on the branches",
        ),
        (
            pull_request_target().changed(GITHUB_HEAD_REF="x"),
            "payload and variables disagree on the branches 'x', 'main'",
        ),
        (
            pull_request_target().changed(GITHUB_BASE_REF="x"),
            "payload and variables disagree on the branches 'steal', 'x'",
        ),
        (pull_request_target().changed(GITHUB_HEAD_REF=""), "GITHUB_HEAD_REF is not set"),
        (pull_request_target().changed(GITHUB_BASE_REF=None), "GITHUB_BASE_REF is not set"),
        (
            pull_request_target().changed(GITHUB_HEAD_REF="x\n::error::y"),
            "GITHUB_HEAD_REF cannot be 'x\\x0a\\x3a\\x3aerror",
        ),
        (
            pull_request_target("synchronize").changed({"after": OTHER}),
            "the pull request's head is another commit than was pushed",
        ),
        (
            pull_request_target().changed({"pull_request.user.login": "writer"}),
            "the pull request is by 'writer': it needs",
        ),
        (
            pull_request_target().changed({"pull_request.user": None}),
            "the pull request is by '': it needs a maintainer's",
        ),
        (
            pull_request_target().changed({"pull_request.user.login": ["x"]}),
            "the pull request is by '<list>': it needs",
        ),
    ],
)
def test_inconsistent_pull_request_is_refused(refusal, started, reason):
    assert refusal(started).startswith(reason)


@pytest.mark.parametrize(
    "head", [None, "", "steal", HEAD[:12], HEAD.upper(), f"{HEAD}0", f"{HEAD}\n", [HEAD], 7, "０" * 40, f" {HEAD}"]
)
def test_head_without_a_full_commit_is_refused(refusal, head):
    started = pull_request_target().changed({"pull_request.head.sha": head})
    assert refusal(started) == "the pull request's head is no whole commit"


@pytest.mark.parametrize("comment", VALID, ids=range(len(VALID)))
def test_commit_of_a_maintainers_comment_is_measured(refusal, comment):
    assert refusal(maintainers_word(comment)) == ""
    assert refusal(maintainers_word(comment, sender="stranger")) == "'stranger' may not start jobs here"


@pytest.mark.parametrize("comment", INVALID, ids=range(len(INVALID)))
def test_other_comments_start_nothing(refusal, comment):
    assert INVALID[comment] in refusal(maintainers_word(comment))


EDITED = "only a new comment counts, not one that was edited or deleted: write another"
NOT_OPEN = "the comment is not below an open pull request"
NOT_THEIRS = "'maintainer' did not write the comment, or an app did in that name"


@pytest.mark.parametrize(
    ("started", "reason"),
    [
        (maintainers_word(action="edited"), EDITED),
        (maintainers_word(action="deleted"), EDITED),
        (maintainers_word().changed({"action": None}), EDITED),
        (maintainers_word().changed({"comment.updated_at": "2026-05-15T15:20:22Z"}), EDITED),
        (maintainers_word().changed({"issue.pull_request": None}), NOT_OPEN),
        (maintainers_word().changed({"issue": {"number": 13, "state": "open"}}), NOT_OPEN),
        (maintainers_word().changed({"issue": None}), NOT_OPEN),
        (maintainers_word().changed({"issue.state": "closed"}), NOT_OPEN),
        (maintainers_word().changed({"issue.state": None}), NOT_OPEN),
        (maintainers_word().changed({"comment.user.login": "stranger"}), NOT_THEIRS),
        (maintainers_word().changed({"comment.user.login": "owner"}), NOT_THEIRS),
        (maintainers_word().changed({"comment.user": None}), NOT_THEIRS),
        (maintainers_word().changed({"comment": None}), NOT_THEIRS),
        (maintainers_word().changed({"comment.performed_via_github_app": {"id": 1, "slug": "x"}}), NOT_THEIRS),
        (maintainers_word().changed({"comment.body": None}), "the comment's first line does not begin with /ldos"),
        (
            maintainers_word().changed({"comment.body": [f"/ldos {HEAD}"]}),
            "the comment's first line does not begin with",
        ),
        (maintainers_word().changed({"review": {}}), "the payload is one of another event: it has review"),
        (maintainers_word().changed({"pull_request": {}}), "the payload is one of another event: it has pull_request"),
        (maintainers_word().changed({"merge_group": {}}), "the payload is one of another event: it has merge_group"),
        (pull_request_target().changed({"comment": {}}), "the payload is one of another event: it has comment"),
        (pull_request_target().changed({"review": {}}), "the payload is one of another event: it has review"),
    ],
)
def test_inconsistent_comment_is_refused(refusal, started, reason):
    assert refusal(started).startswith(reason)


def test_comment_without_an_app_is_its_authors(refusal):
    started = maintainers_word()
    del started.payload["comment"]["performed_via_github_app"]
    assert refusal(started) == ""


@pytest.mark.parametrize("started", WORDS, ids=["request", "comment"])
class TestBoth:
    """A pull request's event and a comment's run the default branch's workflow."""

    def test_only_the_default_branch_is_accepted(self, refusal, started):
        topic = "refs/heads/topic"
        moved = started.changed(
            GITHUB_REF=topic, GITHUB_WORKFLOW_REF=f"{REPOSITORY}/.github/workflows/request.yml@{topic}"
        )
        assert refusal(moved) == "the workflow was taken from 'refs/heads/topic', not from the default branch"
        renamed = moved.changed({"repository.default_branch": "topic"})
        assert "the branch 'refs/heads/topic' is not allowed for the event" in refusal(renamed)
        assert "not from the default branch" in refusal(started.changed({"repository.default_branch": None}))

    @pytest.mark.parametrize("ref", ["refs/pull/13/merge", "refs/pull/13/head", QUEUED, "refs/tags/main", "main"])
    def test_other_refs_are_refused(self, refusal, started, ref):
        assert "not from the default branch" in refusal(started.changed(GITHUB_REF=ref))

    @pytest.mark.parametrize("path", [GATE, ".github/workflows/steal.yml", "../request.yml"])
    def test_only_the_named_workflow_is_accepted(self, refusal, started, path):
        assert "is not allowed" in refusal(started.changed(GITHUB_WORKFLOW_REF=f"{REPOSITORY}/{path}@{MAIN}"))

    def test_workflow_must_be_at_its_runs_commit(self, refusal, started):
        assert "from another commit" in refusal(started.changed(GITHUB_WORKFLOW_SHA=HEAD))

    def test_branch_must_be_protected(self, refusal, started):
        assert refusal(started.changed(GITHUB_REF_PROTECTED="false")) == f"the branch '{MAIN}' is not protected"

    def test_only_the_repository_is_accepted(self, refusal, started):
        whose = {"repository.full_name": "stranger/arm", "repository.id": 666}
        fork = started.changed(whose, GITHUB_REPOSITORY="stranger/arm", GITHUB_REPOSITORY_ID="666")
        assert refusal(started.changed({"repository.id": 666}))
        assert refusal(fork)

    def test_actor_must_be_the_sender(self, refusal, started):
        reason = "payload and variables disagree on who started the job"
        assert refusal(started.changed({"sender.login": "stranger"})) == reason
        assert refusal(started.changed(GITHUB_ACTOR="owner")) == reason

    def test_user_who_reruns_must_be_a_maintainer(self, refusal, started):
        assert refusal(started.changed(GITHUB_TRIGGERING_ACTOR="owner")) == ""
        reason = "'maintainer', started again by 'stranger', may not start jobs here"
        assert refusal(started.changed(GITHUB_TRIGGERING_ACTOR="stranger")) == reason

    @pytest.mark.parametrize("login", ["Maintainer", "maintainer[bot]", "github-actions[bot]", "ghost"])
    def test_similar_login_is_refused(self, refusal, started, login):
        named = started.changed({"sender.login": login}, GITHUB_ACTOR=login, GITHUB_TRIGGERING_ACTOR=login)
        assert refusal(named)

    def test_former_maintainers_permission_is_refused(self, refusal, started, allow_list):
        allow_list.write_text(allow_list.read_text("utf-8").replace('"maintainer"', '"successor"'), "utf-8")
        assert refusal(started) == "'maintainer' may not start jobs here"


@pytest.mark.parametrize("started", [push(), *WORDS, dispatch()], ids=["push", "request", "comment", "hand"])
def test_root_may_allow_a_branch_that_cannot_be_protected(refusal, allow_list, started):
    """As in a private repository of a free plan."""
    event = f'event = "{started.variables["GITHUB_EVENT_NAME"]}"\n'
    first, rule, rest = allow_list.read_text("utf-8").partition(event)
    allow_list.write_text(f"{first}{rule}unprotected = true\n{rest}", "utf-8")
    free = started.changed(GITHUB_REF_PROTECTED="false")
    assert refusal(free) == ""
    assert refusal(nightly().changed(GITHUB_REF_PROTECTED="false"))
    assert "from another commit" in refusal(free.changed(GITHUB_WORKFLOW_SHA=OTHER))


@pytest.mark.parametrize(
    ("started", "commit", "giver"),
    [
        (push(), SHA, "maintainer"),
        (dispatch(), HEAD, "maintainer"),
        (nightly(), SHA, "github-actions[bot]"),
        (pull_request_target(), HEAD, "maintainer"),
        (maintainers_word(f"/ldos {OTHER} trials=3"), OTHER, "maintainer"),
        (maintainers_word().changed(GITHUB_TRIGGERING_ACTOR="owner"), HEAD, "maintainer and owner"),
    ],
)
def test_log_names_the_commit_and_the_maintainer(tmp_path, allow_list, started, commit, giver):
    line = check(started.environment(tmp_path), allow_list, owner=os.geteuid(), require=lambda demands: None)
    assert f" of {REPOSITORY}, measures {commit}, word of {giver}, {REPOSITORY}/.github/workflows/" in line
