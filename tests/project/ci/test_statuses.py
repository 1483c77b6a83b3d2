"""The status of a commit after its measurement: green only if it was measured; and the end of statuses that wait too long."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

HEAD, NEWER, BASE, OTHER, GROUP = ("1f" * 20, "4c" * 20, "2e" * 20, "3d" * 20, "5b" * 20)
QUEUE = f"gh-readonly-queue/main/pr-7-{OTHER}"
LAB = "ldos-lab"


@pytest.fixture
def made(tmp_path):
    """The decision of a job without rights."""

    def write(hosts, *, commit: str = HEAD, base: str = BASE):
        (tmp_path / "received").mkdir(exist_ok=True)
        content = {"commit": commit, "base": base, "hosts": hosts}
        (tmp_path / "received" / "verdicts.json").write_text(json.dumps(content), "utf-8")

    return write


@pytest.fixture
def conclude(run_program, tmp_path):
    def run(*, commit: str = HEAD, base: str = BASE, result: str = "success", **options: str):
        given = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
        return run_program(
            *("conclude", tmp_path / "received", "--repository", "arm-makers/arm", "--commit", commit),
            *("--base", base, "--result", result, *given),
            GITHUB_REPOSITORY="arm-makers/arm",
            GITHUB_RUN_ID="99",
        )

    return run


def one(state: str, text: str = "done") -> dict[str, dict[str, str]]:
    return {LAB: {"state": state, "text": text}}


@pytest.mark.parametrize("state", ["success", "failure", "error"])
def test_a_verdict_names_the_base_and_leads_to_the_run(github, made, conclude, state):
    made(one(state))
    assert conclude().returncode == 0
    (status,) = github.statuses[HEAD]
    assert (status["state"], status["context"], status["description"]) == (state, "ldos", f"done; base {BASE}")
    assert status["target_url"] == "https://github.com/arm-makers/arm/actions/runs/99"


@pytest.mark.parametrize("result", ["success", "failure", "cancelled", "skipped", "timed_out", ""])
def test_unmeasured_commit_is_not_green(github, conclude, result):
    conclude(result=result)
    assert github.shown(HEAD)["ldos"][0] == "error"


@pytest.mark.parametrize("result", ["failure", "cancelled", "skipped", "timed_out", ""])
def test_failed_job_is_not_green(github, made, conclude, result):
    """As if another test of the project failed."""
    made(one("success"))
    conclude(result=result)
    assert github.shown(HEAD)["ldos"][0] == "error"


@pytest.mark.parametrize(("result", "state"), [("failure", "success"), ("cancelled", "error"), ("timed_out", "error")])
def test_failure_because_of_an_accepted_change_is_green(github, made, conclude, result, state):
    made({LAB: {"state": "success", "text": "accepted", "accepted": True}})
    conclude(result=result)
    assert github.shown(HEAD)["ldos"][0] == state


def test_one_of_two_classes_fails(github, made, conclude):
    made(
        {"ldos-lab-a": {"state": "success", "text": "passed"}, "ldos-lab-b": {"state": "failure", "text": "regressed"}}
    )
    conclude(result="failure")
    assert github.shown(HEAD) == {
        "ldos": ("failure", f"regressed, on ldos-lab-b; base {BASE}"),
        "ldos (ldos-lab-a)": ("error", f"passed here, but not as a whole: see ldos; base {BASE}"),
        "ldos (ldos-lab-b)": ("failure", f"regressed; base {BASE}"),
    }


@pytest.mark.parametrize("why", ["job", "base", "part"])
def test_no_class_is_green_if_the_whole_is_not(github, made, conclude, why):
    """Whatever class branch protection asks for."""
    made({f"ldos-lab-{name}": {"state": "success", "text": "passed"} for name in "ab"})
    if why == "base":
        github.open(7, HEAD, BASE)
        github.open(8, HEAD, OTHER, fork=True)
    conclude(result="failure" if why == "job" else "success", **({"part": "trials=1"} if why == "part" else {}))
    assert "success" not in {state for state, _ in github.shown(HEAD).values()}
    assert len(github.shown(HEAD)) == 3


def test_a_part_alone_is_not_green(github, made, conclude):
    made(one("success", "passed"))
    conclude(part="scenarios=baseline")
    text = f"passed with scenarios=baseline alone; a maintainer asks for all: /ldos COMMIT; base {BASE}"
    assert github.shown(HEAD) == {"ldos": ("pending", text)}


def test_a_part_that_regressed_is_red(github, made, conclude):
    made(one("failure", "regressed"))
    conclude(part="scenarios=baseline", result="failure")
    assert github.shown(HEAD)["ldos"][0] == "failure"


def test_regression_has_precedence_over_an_error(github, made, conclude):
    made({"ldos-lab-a": {"state": "failure", "text": "regressed"}, "ldos-lab-b": {"state": "error", "text": "infra"}})
    conclude(result="failure")
    assert github.shown(HEAD)["ldos"][0] == "failure"


def test_a_long_text_keeps_the_base(github, made, conclude):
    made(one("failure", "x" * 500))
    conclude(result="failure")
    _, description = github.shown(HEAD)["ldos"]
    assert len(description) == 140
    assert description.endswith(f"…; base {BASE}")


@pytest.mark.parametrize("is_judged", [True, False])
def test_commit_replaced_while_waiting(github, made, conclude, is_judged):
    github.open(7, NEWER, BASE)
    if is_judged:
        made(one("error", "ldos-lab left no trials"))
    conclude(result="cancelled", pull_request="7")
    assert github.shown(HEAD) == {"ldos": ("error", f"superseded by {NEWER}; base {BASE}")}


def test_a_machine_that_never_answers(github, conclude):
    github.open(7, HEAD, BASE)
    conclude(result="cancelled", pull_request="7")
    assert github.shown(HEAD)["ldos"][1].startswith("cancelled, or timed out")


def test_two_pull_requests_of_one_commit_with_different_bases(github, made, conclude):
    """One status cannot say what came of both."""
    github.open(7, HEAD, BASE)
    github.open(8, HEAD, OTHER, fork=True)
    made(one("success"))
    conclude(pull_request="7")
    state, text = github.shown(HEAD)["ldos"]
    assert (state, text) == (
        "error",
        f"another pull request of this commit has base {OTHER[:12]}: close one of the two; base {BASE}",
    )
    github.pulls = [each for each in github.pulls if each["number"] == 7]
    conclude(pull_request="7")
    assert github.shown(HEAD)["ldos"][0] == "success"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        json.dumps({"commit": NEWER, "base": BASE, "hosts": one("success")}),
        json.dumps({"commit": HEAD, "base": OTHER, "hosts": one("success")}),
        json.dumps({"commit": HEAD, "base": "main", "hosts": one("success")}),
        json.dumps({"commit": HEAD, "base": BASE, "hosts": {}}),
        json.dumps({"commit": HEAD, "base": BASE, "hosts": {"../x": {"state": "success", "text": ""}}}),
        json.dumps({"commit": HEAD, "base": BASE, "hosts": one("pending")}),
        json.dumps({"commit": HEAD, "base": BASE, "hosts": one("SUCCESS")}),
        json.dumps({"commit": HEAD, "base": BASE, "hosts": one("success", "a\nb")}),
        json.dumps({"commit": HEAD, "base": BASE, "hosts": {LAB: {"state": "success", "text": 1}}}),
        json.dumps({"commit": HEAD, "base": BASE, "hosts": {LAB: {"state": "success"}}}),
        json.dumps({"commit": HEAD, "base": BASE, "hosts": {f"ldos-lab-{n}": one("success")[LAB] for n in range(17)}}),
        "[" * 60_000,
        "x" * 100_000,
    ],
    ids=range(16),
)
def test_invalid_file_of_verdicts(github, conclude, tmp_path, content):
    (tmp_path / "received").mkdir()
    (tmp_path / "received" / "verdicts.json").write_text(content, "utf-8")
    done = conclude()
    assert done.returncode == 1
    assert github.shown(HEAD)["ldos"][0] == "error"
    assert "Traceback" not in done.stderr


def test_pushs_base_comes_from_its_trials(github, made, conclude):
    github.revisions[BASE[:12]] = BASE
    made(one("success"), base=BASE[:12])
    conclude(base="")
    assert github.shown(HEAD) == {"ldos": ("success", f"done; base {BASE}")}


def test_a_token_that_may_not_write_statuses(github, made, conclude):
    github.headers = {"X-Accepted-GitHub-Permissions": "statuses=write"}
    github.failures["POST"] = 403
    made(one("success"))
    done = conclude()
    assert done.returncode == 1
    assert "the job's token needs the right statuses: write" in done.stderr


@pytest.fixture
def equal_files(github):
    """A pull request that was measured, and its merge group with the same files onto an equal base."""
    github.open(7, HEAD, BASE)
    github.add_status(HEAD, "success", f"passed; base {BASE}")
    github.trees = {HEAD: "a1" * 20, GROUP: "a1" * 20, BASE: "a2" * 20, OTHER: "a2" * 20}
    return github


@pytest.fixture
def reuse(run_program, tmp_path):
    def run(ref: str = f"refs/heads/{QUEUE}") -> str:
        output = tmp_path / "output"
        output.unlink(missing_ok=True)
        arguments = ("reuse", "--repository", "arm-makers/arm", "--commit", GROUP, "--ref", ref)
        assert run_program(*arguments, GITHUB_OUTPUT=str(output)).returncode == 0
        return output.read_text("utf-8")

    return run


def test_a_group_with_equal_files_is_not_measured_again(equal_files, reuse, conclude):
    assert reuse() == "measured=true\n"
    conclude(commit=GROUP, base="", ref=QUEUE)
    assert equal_files.shown(GROUP) == {"ldos": ("success", f"passed; measured on the pull request; base {OTHER}")}


@pytest.mark.parametrize("change", ["files", "base", "red", "forged", "none", "other", "no base"])
def test_any_other_group_is_measured(equal_files, reuse, conclude, change):
    if change in {"files", "base"}:
        equal_files.trees[{"files": GROUP, "base": OTHER}[change]] = "a3" * 20
    elif change == "red":
        equal_files.add_status(HEAD, "failure", f"regressed; base {BASE}")
    elif change == "no base":
        equal_files.add_status(HEAD, "success", "passed")
    elif change in {"forged", "none"}:
        equal_files.statuses.clear()
        if change == "forged":
            equal_files.add_status(HEAD, "success", f"passed; base {BASE}", login="writer")
    else:
        equal_files.open(7, NEWER, BASE)
        equal_files.trees[NEWER] = "a1" * 20
    assert reuse() == "measured=false\n"
    conclude(commit=GROUP, base="", ref=QUEUE)
    assert equal_files.shown(GROUP)["ldos"][0] == "error"


def test_verdict_of_each_class_is_copied(equal_files, conclude):
    equal_files.statuses[HEAD].append({**equal_files.statuses[HEAD][0], "context": "ldos (ldos-lab-b)"})
    conclude(commit=GROUP, base="", ref=QUEUE)
    assert {context: state for context, (state, _) in equal_files.shown(GROUP).items()} == {
        "ldos": "success",
        "ldos (ldos-lab-b)": "success",
    }


def test_push_is_not_a_merge_group(equal_files, reuse):
    assert reuse("refs/heads/main") == "measured=false\n"


def test_a_group_that_was_measured_keeps_its_own_verdict(equal_files, made, conclude):
    made(one("failure", "regressed"), commit=GROUP, base=OTHER)
    conclude(commit=GROUP, base="", ref=QUEUE, result="failure")
    assert equal_files.shown(GROUP)["ldos"][0] == "failure"


def test_run_begins_with_a_pending_status(github, run_program):
    arguments = ("begin", "--repository", "arm-makers/arm", "--commit", GROUP, "--ref", QUEUE, "--run", "12")
    run_program(*arguments, GITHUB_REPOSITORY="arm-makers/arm")
    assert github.shown(GROUP) == {"ldos": ("pending", f"waits for the machine; base {OTHER}")}
    assert github.statuses[GROUP][0]["target_url"].endswith("/arm-makers/arm/actions/runs/12")


@pytest.fixture
def sweep(run_program):
    return lambda: run_program("sweep", "--repository", "arm-makers/arm", "--hours", "30", "--branch", "main")


def test_overlong_wait_is_an_error(github, sweep):
    now = datetime.now(UTC)
    for number, (commit, hours) in enumerate({HEAD: 31, NEWER: 29, OTHER: 31}.items(), 1):
        github.open(number, commit, BASE)
        github.add_status(commit, "pending", f"waits for the machine; base {BASE}", at=now - timedelta(hours=hours))
    github.add_status(OTHER, "success", f"passed; base {BASE}", at=now - timedelta(hours=30.5))
    assert sweep().returncode == 0
    assert github.shown(HEAD)["ldos"][0] == "error"
    assert github.shown(HEAD)["ldos"][1] == f"timed out after 30 h; a maintainer comments /ldos {HEAD}"
    assert [github.shown(each)["ldos"][0] for each in (NEWER, OTHER)] == ["pending", "success"]


def test_each_class_of_machines_and_the_newest_commits_of_the_branch(github, sweep):
    github.git.branches["main"] = HEAD
    long_ago = datetime.now(UTC) - timedelta(days=3)
    github.add_status(HEAD, "pending", "waits for the machine", at=long_ago)
    github.statuses[HEAD].append({**github.statuses[HEAD][0], "context": "ldos (ldos-lab-b)"})
    github.statuses[HEAD].append({**github.statuses[HEAD][0], "context": "another check"})
    sweep()
    assert {context: state for context, (state, _) in github.shown(HEAD).items()} == {
        "ldos": "error",
        "ldos (ldos-lab-b)": "error",
        "another check": "pending",
    }


def test_a_second_sweep_writes_nothing(github, sweep):
    github.open(7, HEAD, BASE)
    github.add_status(HEAD, "pending", "waits for the machine", at=datetime.now(UTC) - timedelta(days=3))
    sweep()
    written = len(github.statuses[HEAD])
    assert sweep().stdout == "nothing has waited for too long\n"
    assert len(github.statuses[HEAD]) == written


@pytest.fixture
def move_tag(run_program):
    return lambda release: run_program("move-tag", release, "--repository", "arm-makers/arm", "--commit", HEAD)


def test_a_release_moves_its_major_tag(github, move_tag):
    github.git.branches["tags/v1"] = NEWER
    assert move_tag("v1.4.0").stdout == f"v1 is at {HEAD}\n"
    assert move_tag("v2.0.0").stdout == f"v2 is at {HEAD}\n"
    assert github.git.branches == {"tags/v1": HEAD, "tags/v2": HEAD}


def test_old_release_keeps_the_major_tag(github, move_tag):
    github.git.branches.update({"tags/v1": NEWER, "tags/v1.10.0": NEWER, "tags/v1.9.0": BASE, "tags/v1.x": OTHER})
    assert move_tag("v1.9.1").stdout == "v1 stays at v1.10.0, which is newer\n"
    assert github.git.branches["tags/v1"] == NEWER
    assert move_tag("v1.10.1").stdout == f"v1 is at {HEAD}\n"


@pytest.mark.parametrize("release", ["v1", "1.2.3", "v1.2.3rc1", "v01.2.3", "main", "v1.2.3/x", ""])
def test_other_tags_move_no_major_tag(github, move_tag, release):
    assert move_tag(release).returncode == 1
    assert github.git.branches == {}
