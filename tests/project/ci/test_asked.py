"""Events that ask for measurements: which are measured, which wait, which get an answer; nothing is green before it was."""

from __future__ import annotations

import json

import pytest

from tests.builders.asking import MAINTAINER, STRANGER, by_hand, comment, labeled, pull_request
from tests.builders.words_of_maintainers import INVALID, VALID

HEAD, NEWER, BASE, FORKED_AT = "1f" * 20, "4c" * 20, "2e" * 20, "3d" * 20
WAITS_FOR_WORD = ("pending", f"waits for a maintainer's word: /ldos COMMIT; base {FORKED_AT}")
WAITS_FOR_MACHINE = ("pending", f"waits for the machine; base {FORKED_AT}")


@pytest.fixture
def opened(github):
    """Opens a pull request; its branch left main some commits ago."""

    def open_one(head: str = HEAD, **kinds):
        github.merge_bases[BASE, head] = FORKED_AT
        return github.open(7, head, BASE, **kinds)

    return open_one


@pytest.fixture
def decide(run_program, tmp_path):
    """Lets the program decide about an event; returns its output, and the outputs for the next jobs."""

    def run(event: str, payload, *, maintainers: str = json.dumps([MAINTAINER]), status: int = 0):
        (tmp_path / "event.json").write_text(json.dumps(payload), "utf-8")
        (tmp_path / "output").unlink(missing_ok=True)
        done = run_program(
            *("decide", "--repository", "arm-makers/arm", "--scenarios", "baseline cpu_load"),
            GITHUB_EVENT_NAME=event,
            GITHUB_EVENT_PATH=str(tmp_path / "event.json"),
            GITHUB_OUTPUT=str(tmp_path / "output"),
            GITHUB_REPOSITORY="arm-makers/arm",
            GITHUB_RUN_ID="99",
            LDOS_MAINTAINERS=maintainers,
        )
        assert done.returncode == status, done.stderr
        text = (tmp_path / "output").read_text("utf-8") if (tmp_path / "output").exists() else ""
        return done.stdout + done.stderr, dict(line.split("=", 1) for line in text.splitlines())

    return run


MEASURED = {
    "commit": HEAD,
    "base": FORKED_AT,
    "pull-request": "7",
    "scenarios": "baseline cpu_load",
    "stack": "",
    "trials": "",
    "part": "",
}


@pytest.mark.parametrize("action", ["opened", "synchronize", "reopened"])
def test_maintainers_branch_is_measured_immediately(github, opened, decide, action):
    """Against the commit where it left the base branch."""
    _, outputs = decide("pull_request_target", pull_request(action, opened()))
    assert outputs == MEASURED
    assert github.shown(HEAD) == {"ldos": WAITS_FOR_MACHINE}
    (status,) = github.statuses[HEAD]
    assert status["target_url"] == "https://github.com/arm-makers/arm/actions/runs/99"


@pytest.mark.parametrize(("fork", "sender"), [(True, STRANGER), (True, MAINTAINER), (False, STRANGER)])
@pytest.mark.parametrize("action", ["opened", "synchronize", "reopened"])
def test_other_pull_requests_wait_for_permission(github, opened, decide, action, fork, sender):
    _, outputs = decide("pull_request_target", pull_request(action, opened(fork=fork, author=sender), sender=sender))
    assert outputs == {}
    assert github.shown(HEAD) == {"ldos": WAITS_FOR_WORD}


@pytest.mark.parametrize("action", ["synchronize", "reopened", "edited"])
def test_maintainers_other_events_give_no_permission(github, opened, decide, action):
    found = opened(author=STRANGER)
    _, outputs = decide("pull_request_target", pull_request(action, found, changes={"base": {}}))
    assert outputs == {}
    assert github.shown(HEAD) == {"ldos": WAITS_FOR_WORD}


def test_there_are_no_maintainers_by_default(github, opened, decide):
    _, outputs = decide("pull_request_target", pull_request("opened", opened()), maintainers="")
    assert outputs == {}
    assert github.shown(HEAD) == {"ldos": WAITS_FOR_WORD}


@pytest.mark.parametrize("text", ["{}", "[1]", '["a b"]', "octocat", '["github-actions[bot]"]', "[" * 9999])
def test_invalid_list_of_maintainers(github, opened, decide, text):
    printed, _ = decide("pull_request_target", pull_request("opened", opened()), maintainers=text, status=1)
    assert "LDOS_MAINTAINERS" in printed
    state, description = github.shown(HEAD)["ldos"]
    assert state == "error"
    assert "LDOS_MAINTAINERS" in description


def test_a_pull_request_without_a_common_commit(github, opened, decide):
    found = opened()
    github.failures["GET compare"] = 404
    decide("pull_request_target", pull_request("opened", found), status=1)
    assert github.shown(HEAD)["ldos"][0] == "error"


@pytest.mark.parametrize("login", ["Maintainer", "MAINTAINER"])
def test_logins_are_compared_as_github_does(github, opened, decide, login):
    _, outputs = decide("issue_comment", comment(opened(), f"/ldos {HEAD}", sender=login))
    assert outputs["commit"] == HEAD


def test_a_newer_commit_supersedes_one_that_waits(github, opened, decide):
    decide("pull_request_target", pull_request("opened", opened()))
    decide("pull_request_target", pull_request("synchronize", opened(NEWER), before=HEAD))
    assert github.shown(HEAD) == {"ldos": ("error", f"superseded by {NEWER}")}
    assert github.shown(NEWER) == {"ldos": WAITS_FOR_MACHINE}


def test_a_newer_commit_ends_no_waiting_of_others(github, opened, decide):
    """Another pull request's, or that of a branch, where a fork's branch was at the same commit."""
    github.add_status(HEAD, "pending", f"waits for the machine; base {FORKED_AT}")
    github.merge_bases[BASE, HEAD] = FORKED_AT
    github.open(8, HEAD, BASE)
    decide("pull_request_target", pull_request("synchronize", opened(NEWER, fork=True), before=HEAD, sender=STRANGER))
    assert github.shown(HEAD)["ldos"][0] == "pending"
    github.pulls = [each for each in github.pulls if each["number"] == 7]
    github.add_status(HEAD, "pending", "waits for the machine")
    decide("pull_request_target", pull_request("synchronize", opened(NEWER, fork=True), before=HEAD, sender=STRANGER))
    assert github.shown(HEAD)["ldos"] == ("pending", "waits for the machine"), "the main branch's"


def test_another_pull_request_of_the_same_commit_onto_another_base(github, opened, decide):
    """Before one of the two is closed nothing is green, whichever was measured."""
    opened(fork=True)
    github.add_status(HEAD, "success", f"passed; base {FORKED_AT}")
    other = github.open(8, HEAD, NEWER, fork=True)
    decide("pull_request_target", pull_request("opened", other, sender=STRANGER))
    state, description = github.shown(HEAD)["ldos"]
    assert (state, description[:34]) == ("error", "another pull request of this commi")


def test_every_class_of_machines_waits_again(github, opened, decide):
    github.add_status(HEAD, "success", f"passed; base {BASE}")
    github.statuses[HEAD].append({**github.statuses[HEAD][0], "context": "ldos (ldos-lab-b)"})
    decide("pull_request_target", pull_request("edited", opened(), changes={"base": {}}))
    assert {state for state, _ in github.shown(HEAD).values()} == {"pending"}


def test_other_users_do_not_affect_a_running_measurement(github, opened, decide):
    found = opened(fork=True)
    decide("issue_comment", comment(found, f"/ldos {HEAD}"))
    decide("pull_request_target", pull_request("reopened", found, sender=STRANGER))
    assert github.shown(HEAD) == {"ldos": WAITS_FOR_MACHINE}


@pytest.mark.parametrize("state", ["success", "failure"])
def test_newer_commit_keeps_earlier_verdicts(github, opened, decide, state):
    github.add_status(HEAD, state, f"done; base {FORKED_AT}")
    decide("pull_request_target", pull_request("synchronize", opened(NEWER), before=HEAD))
    assert github.shown(HEAD) == {"ldos": (state, f"done; base {FORKED_AT}")}


def test_another_base_makes_it_wait_again(github, opened, decide):
    """A status belongs to a commit and a base."""
    found = opened(fork=True)
    github.add_status(HEAD, "success", f"passed; base {BASE}")
    decide("pull_request_target", pull_request("edited", found, sender=STRANGER, changes={"base": {"ref": {}}}))
    assert github.shown(HEAD) == {"ldos": WAITS_FOR_WORD}


def test_reopened_pull_request_keeps_its_verdict(github, opened, decide):
    found = opened(fork=True)
    github.add_status(HEAD, "success", f"passed; base {FORKED_AT}")
    decide("pull_request_target", pull_request("reopened", found, sender=STRANGER))
    assert github.shown(HEAD)["ldos"][0] == "success"


def test_status_written_by_another_user_is_no_verdict(github, opened, decide):
    found = opened(fork=True)
    github.add_status(HEAD, "success", f"passed; base {FORKED_AT}", login="writer")
    decide("pull_request_target", pull_request("reopened", found, sender=STRANGER))
    assert github.shown(HEAD) == {"ldos": WAITS_FOR_WORD}


@pytest.mark.parametrize(
    "more", [{"changes": {"title": {}}}, {"changes": {"body": {}}}, {}], ids=["title", "body", "nothing"]
)
def test_event_without_new_commit_or_base_does_nothing(github, opened, decide, more):
    printed, outputs = decide("pull_request_target", pull_request("edited", opened(), **more))
    assert printed.startswith("nothing to do")
    assert (outputs, github.statuses) == ({}, {})


def test_a_pull_request_that_is_closed(github, opened, decide):
    printed, _ = decide("pull_request_target", pull_request("synchronize", {**opened(), "state": "closed"}))
    assert printed == "nothing to do: the pull request is closed\n"
    assert github.statuses == {}


def test_a_maintainers_label_on_a_branch_of_the_repository(github, opened, decide):
    _, outputs = decide("pull_request_target", labeled(opened(author=STRANGER)))
    assert outputs == MEASURED
    assert github.shown(HEAD) == {"ldos": WAITS_FOR_MACHINE}


def test_a_label_on_a_fork_is_answered_with_the_line_to_paste(github, opened, decide):
    _, outputs = decide("pull_request_target", labeled(opened(fork=True)))
    assert (outputs, github.statuses) == ({}, {})
    (answer,) = github.comments
    assert answer["body"].endswith(f"\n/ldos {HEAD}\n```")


@pytest.mark.parametrize(("label", "sender"), [("ldos", STRANGER), ("LDOS", MAINTAINER), ("bug", MAINTAINER)])
@pytest.mark.parametrize("fork", [True, False])
def test_other_labels_and_other_users_labels_do_nothing(github, opened, decide, fork, label, sender):
    printed, outputs = decide("pull_request_target", labeled(opened(fork=fork), label, sender=sender))
    assert printed.startswith("nothing to do")
    assert (outputs, github.statuses, github.comments) == ({}, {}, [])


@pytest.mark.parametrize("fork", [True, False])
def test_maintainers_comment_starts_the_measurement(github, opened, decide, fork):
    _, outputs = decide("issue_comment", comment(opened(fork=fork, author=STRANGER), f"/ldos {HEAD}"))
    assert outputs == MEASURED
    assert github.shown(HEAD) == {"ldos": WAITS_FOR_MACHINE}


def test_comment_with_options(opened, decide):
    body = f"/ldos {HEAD} scenarios=baseline,msg_load stack=ros2 trials=20\r\nas agreed"
    _, outputs = decide("issue_comment", comment(opened(fork=True), body))
    part = "scenarios=baseline,msg_load stack=ros2"
    assert outputs == {**MEASURED, "scenarios": "baseline msg_load", "stack": "ros2", "trials": "20", "part": part}


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ("", ""),
        ("scenarios=cpu_load,baseline", ""),
        ("scenarios=cpu_load,baseline,msg_load trials=10", ""),
        ("stack=both", ""),
        ("stack=embedded", "stack=embedded"),
        ("scenarios=baseline", "scenarios=baseline"),
        ("trials=9 scenarios=x", "scenarios=x trials=9"),
    ],
)
def test_partial_measurement_is_marked_as_partial(opened, decide, options, part):
    """A partial measurement is never green, and is not used for a merge group."""
    _, outputs = decide("issue_comment", comment(opened(), f"/ldos {HEAD} {options}"))
    assert outputs["part"] == part


def test_no_text_of_an_event_becomes_an_output(github, decide):
    github.revisions["main"] = FORKED_AT
    evil = f"ros2\ncommit={NEWER}\npull-request=7"
    printed, outputs = decide("workflow_dispatch", by_hand(HEAD, base="main", stack=evil), status=1)
    assert "the stack is none of" in printed
    assert outputs == {}


def test_a_push_between_reading_and_the_comment(github, opened, decide):
    """The commit is in the maintainer's own words: what came after it is not measured."""
    _, outputs = decide("issue_comment", comment(opened(NEWER, fork=True), f"/ldos {HEAD}"))
    assert (outputs, github.statuses) == ({}, {})
    (answer,) = github.comments
    assert f"`{HEAD}` is not what it is at now" in answer["body"]
    assert f"/ldos {NEWER}" in answer["body"]


@pytest.mark.parametrize(
    "body", ["/ldos", "/ldos main", f"/ldos {HEAD[:12]}", f"/ldos {HEAD} base=main", "/ldos\thelp"]
)
def test_comment_without_a_commit_is_answered_with_the_line_to_paste(github, opened, decide, body):
    _, outputs = decide("issue_comment", comment(opened(fork=True), body))
    assert (outputs, github.statuses) == ({}, {})
    assert [each["body"].endswith(f"\n/ldos {HEAD}\n```") for each in github.comments] == [True]


@pytest.mark.parametrize("action", ["edited", "deleted"])
def test_a_comment_that_is_not_new_does_nothing(github, opened, decide, action):
    """Whoever may write to the repository may edit what a maintainer wrote."""
    printed, outputs = decide("issue_comment", comment(opened(fork=True), f"/ldos {HEAD}", action=action))
    assert printed.startswith("nothing to do")
    assert (outputs, github.statuses, github.comments) == ({}, {}, [])


@pytest.mark.parametrize("body", [f"/ldos {HEAD}", "/ldos"])
def test_other_users_comment_does_nothing(github, opened, decide, body):
    printed, outputs = decide("issue_comment", comment(opened(fork=True), body, sender=STRANGER))
    assert printed == "nothing to do: 'stranger' is not on the allow-list\n"
    assert (outputs, github.statuses, github.comments) == ({}, {}, [])


def test_former_maintainer_is_refused(github, opened, decide):
    _, outputs = decide("issue_comment", comment(opened(), f"/ldos {HEAD}"), maintainers='["another"]')
    assert (outputs, github.statuses) == ({}, {})


def test_comment_on_an_issue(github, opened, decide):
    payload = comment(opened(), f"/ldos {HEAD}")
    del payload["issue"]["pull_request"]
    printed, _ = decide("issue_comment", payload)
    assert printed == "nothing to do: an issue has no commit\n"


def test_comment_on_a_closed_pull_request(github, opened, decide):
    found = opened(fork=True)
    found["state"] = "closed"
    _, outputs = decide("issue_comment", comment(found, f"/ldos {HEAD}"))
    assert (outputs, github.statuses) == ({}, {})
    assert "is closed" in github.comments[0]["body"]


@pytest.mark.parametrize(
    ("base", "commit"), [("", "main"), ("main", "main"), ("v1", "v1"), (BASE, BASE), ("a/b", "a/b")]
)
def test_manual_start(github, decide, base, commit):
    github.revisions.update({"main": FORKED_AT, "v1": FORKED_AT, BASE: FORKED_AT, "a/b": FORKED_AT})
    _, outputs = decide("workflow_dispatch", by_hand(HEAD, base=base, stack="both"))
    assert outputs == {**MEASURED, "pull-request": "0", "stack": "both"}
    assert f"GET /repos/arm-makers/arm/commits/{commit.replace('/', '%2F')}" in github.asked


@pytest.mark.parametrize(
    ("commit", "base"), [("main", "main"), (HEAD[:7], "main"), (HEAD, "a..b"), (HEAD, "-x"), (HEAD, "~")]
)
def test_manual_start_without_a_commit(github, decide, commit, base):
    decide("workflow_dispatch", by_hand(commit, base=base), status=1)
    assert github.statuses == {}


@pytest.mark.parametrize("event", ["pull_request", "push", "workflow_run", "schedule", ""])
def test_other_events_request_nothing(opened, decide, event):
    printed, outputs = decide(event, pull_request("opened", opened()), status=1)
    assert "asks for nothing" in printed
    assert outputs == {}


def test_branch_named_like_a_command_is_not_executed(github, opened, decide):
    found = opened()
    found["head"]["ref"] = found["base"]["ref"] = "$(touch owned)\n::set-output::"
    _, outputs = decide("pull_request_target", pull_request("opened", found))
    assert outputs == MEASURED


def test_word_that_accepts_a_red_commit_judges_its_run_again(github, opened, decide):
    found = opened()
    github.add_status(HEAD, "failure", f"regressed; base {FORKED_AT}", run="41")
    _, outputs = decide("issue_comment", comment(found, f'/ldos accept {HEAD} T1 "wanted"'))
    assert outputs == {"red": HEAD, "red-base": FORKED_AT, "run": "41", "pull-request": "7"}
    assert [state for state, _ in github.shown(HEAD).values()] == ["failure"], "until it is judged"


@pytest.mark.parametrize("state", ["success", "error", "pending", None])
def test_word_that_accepts_a_commit_that_is_not_red(github, opened, decide, state):
    found = opened()
    if state:
        github.add_status(HEAD, state, f"x; base {FORKED_AT}", run="41")
    _, outputs = decide("issue_comment", comment(found, f'/ldos accept {HEAD} T1 "wanted"'))
    assert outputs == {}
    assert "is not red" in github.comments[-1]["body"]


def test_status_of_somebody_else_is_not_accepted(github, opened, decide):
    found = opened()
    github.add_status(HEAD, "failure", f"regressed; base {FORKED_AT}", run="41", login=STRANGER)
    assert decide("issue_comment", comment(found, f'/ldos accept {HEAD} T1 "wanted"'))[1] == {}


def test_word_that_accepts_another_commit(github, opened, decide):
    found = opened()
    github.add_status(HEAD, "failure", f"regressed; base {FORKED_AT}", run="41")
    assert decide("issue_comment", comment(found, f'/ldos accept {NEWER} T1 "wanted"'))[1] == {}
    assert "is not what it is at now" in github.comments[-1]["body"]


def test_strangers_word_accepts_nothing(github, opened, decide):
    found = opened()
    github.add_status(HEAD, "failure", f"regressed; base {FORKED_AT}", run="41")
    assert decide("issue_comment", comment(found, f'/ldos accept {HEAD} T1 "x"', sender=STRANGER))[1] == {}
    assert github.comments == []


@pytest.mark.parametrize("body", VALID, ids=range(len(VALID)))
def test_comment_is_parsed_as_on_the_machine(module_of, body):
    commit, options = VALID[body]
    word = module_of("word").parse_word(body)
    assert (word.commit, word.options) == (commit, options)


@pytest.mark.parametrize("body", INVALID, ids=range(len(INVALID)))
def test_comment_refused_by_the_machine_is_refused(module_of, body):
    with pytest.raises(module_of("github_api").Failed):
        module_of("word").parse_word(body)
