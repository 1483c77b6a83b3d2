"""The issue about a regression: opened once, written again, closed when the last good commit's level is back."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

GOOD, BAD, LATER, NEWEST, GONE = ("1f" * 20, "2e" * 20, "3d" * 20, "4c" * 20, "5b" * 20)
MARK = "<!-- pytest-ldos regression -->"
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def notify(run_program):
    return lambda **changes: run_program("notify", "--repository", "arm-makers/arm", "--branch", "main", **changes)


@pytest.fixture
def find_base(run_program, tmp_path):
    def run(commit: str) -> str:
        output = tmp_path / "output"
        arguments = ("find-base", "--repository", "arm-makers/arm", "--commit", commit)
        assert run_program(*arguments, GITHUB_OUTPUT=str(output)).returncode == 0
        return output.read_text("utf-8")

    return run


@pytest.fixture
def push(github):
    """Adds commits to the branch: a verdict on the last one, and the base of it, or none."""

    def run(*commits: str, state: str = "", base: str = "", text: str = "", **kinds):
        for commit in commits:
            before = next(iter(github.parents), None)
            github.parents = {commit: (before,) if before else (), **github.parents}
        if state:
            text = text or {"success": "passed", "failure": "regressed: baseline"}.get(state, state)
            kinds.setdefault("at", BEGAN + timedelta(minutes=len(github.parents)))
            github.add_status(commits[-1], state, f"{text}; base {base}" if base else text, **kinds)

    return run


@pytest.fixture
def regressed(push):
    push(GOOD, state="success", base="6a" * 20)
    push(BAD, state="failure", base=GOOD)


@pytest.fixture
def opened(github, notify, regressed):
    assert notify().stdout == "issue 1000 was opened\n"
    (issue,) = github.issues
    return issue


def names(number: int) -> list[str]:
    """Commits of a branch."""
    return [f"{each:040x}" for each in range(1, number + 1)]


def test_a_regression_opens_an_issue(github, notify, push):
    push(GOOD, state="success", base="6a" * 20)
    push(LATER, BAD, state="failure", base=GOOD, text="regressed: baseline, cpu_load, on ldos-lab-a, ldos-lab-b")
    github.statuses[BAD][0]["target_url"] = "https://github.com/arm-makers/arm/actions/runs/12"
    assert notify().stdout == "issue 1000 was opened\n"
    (issue,) = github.issues
    assert issue["title"] == f"Performance regression since {BAD[:12]}"
    assert issue["body"].startswith(f"{MARK}\n")
    shown = (
        "```text\nregressed: baseline, cpu_load, on ldos-lab-a, ldos-lab-b\n```",
        f"[2 commits after {GOOD}](https://github.com/arm-makers/arm/compare/{GOOD}...{BAD})",
        f'$ git checkout {BAD}\n$ pytest -m "baseline or cpu_load" --ldos-base {GOOD}\n',
        f"$ ldos bisect {GOOD} {BAD} --scenario baseline\n$ ldos bisect {GOOD} {BAD} --scenario cpu_load\n```",
        "[this run](https://github.com/arm-makers/arm/actions/runs/12)",
    )
    assert [each for each in shown if each not in issue["body"]] == []
    assert github.comments == []


def test_one_commit_needs_no_search(opened):
    assert "[1 commit after" in opened["body"]
    assert "ldos bisect" not in opened["body"]


def test_commands_are_those_of_the_real_programs(github, notify, push):
    from pytest_ldos.scenario.options import OPTIONS
    from tests.project.workflows.test_steps import parse_command

    push(GOOD)
    push(LATER, BAD, state="failure", base=GOOD)
    notify()
    (bisect,) = re.findall(r"\$ ldos (bisect .*)", github.issues[0]["body"])
    parse_command(bisect.split())
    assert "--ldos-base" in {option.flag for option in OPTIONS.values()}


def test_the_same_verdict_writes_nothing(github, notify, opened):
    asked = len(github.asked)
    assert notify().stdout == "issue 1000 is up to date\n"
    assert {each.split()[0] for each in github.asked[asked:]} == {"GET"}


def test_a_later_regressed_commit_rewrites_it(github, notify, push, opened):
    push(LATER, state="failure", base=GOOD, text="regressed: cpu_load")
    assert notify().stdout == "issue 1000 was written again\n"
    assert (len(github.issues), github.comments) == (1, [])
    assert f"<!-- range {GOOD}..{BAD} -->" in opened["body"], "it still came with the first"
    assert f'$ git checkout {LATER}\n$ pytest -m "cpu_load" --ldos-base {GOOD}\n' in opened["body"]


def test_success_against_the_last_good_commit_closes_it(github, notify, push, opened, find_base):
    push(LATER)
    assert find_base(LATER) == f"base={GOOD}\n"
    github.add_status(LATER, "success", f"passed; base {GOOD}")
    assert notify().stdout == "issue 1000 was closed\n"
    assert (opened["state"], opened["state_reason"]) == ("closed", "completed")
    (comment,) = github.comments
    assert comment["body"] == f"main is as fast as before again: {LATER} passed, compared with {GOOD}."
    assert notify().stdout == f"{LATER} has not regressed, and no issue is open\n"
    assert len(github.comments) == 1


def test_an_accepted_slowdown_closes_it(notify, push, opened):
    push(LATER, state="success", base=GOOD, text="accepted: baseline")
    notify()
    assert opened["state"] == "closed"


@pytest.mark.parametrize("text", ["passed", "improved: baseline"])
def test_success_against_the_regressed_commit_is_not_the_end(github, notify, push, opened, text):
    """As where it was pushed while the regressed one was being measured: it may be as slow."""
    push(LATER, state="success", base=BAD, text=text)
    assert notify().stdout == f"issue 1000 stays open: {LATER} was not compared with {GOOD}\n"
    assert (opened["state"], github.comments) == ("open", [])


@pytest.mark.parametrize("state", ["error", "pending"])
def test_unmeasured_commit_changes_nothing(github, notify, push, opened, state):
    push(LATER, state=state, base=GOOD)
    assert notify().stdout == "issue 1000 is up to date\n"
    assert opened["state"] == "open"


@pytest.mark.parametrize("state", ["success", "error", "pending", ""])
def test_nothing_is_opened_without_a_regression(github, notify, push, state):
    push(GOOD, BAD, state=state, base=GOOD)
    assert notify().returncode == 0
    assert github.issues == []


def test_a_new_regression_is_a_new_issue(github, notify, push, opened):
    push(LATER, state="success", base=GOOD)
    notify()
    push(NEWEST, state="failure", base=LATER, at=datetime.now(UTC) + timedelta(minutes=1))
    assert notify().stdout == "issue 1001 was opened\n"
    assert (opened["state"], github.issues[1]["title"]) == ("closed", f"Performance regression since {NEWEST[:12]}")


def test_first_of_several_regressed_commits(github, notify, push, regressed):
    """No issue was opened in time: each was compared with the one before."""
    push(LATER, state="failure", base=BAD)
    push(NEWEST, state="success", base=LATER)
    notify()
    (issue,) = github.issues
    assert f"<!-- range {GOOD}..{BAD} -->" in issue["body"]
    assert f"Verdict on {LATER}" in issue["body"]


def test_issue_closed_by_hand_accepts_the_new_level(github, notify, push, opened, find_base):
    github.close_issue(opened, BEGAN + timedelta(hours=1))
    assert notify().stdout == f"the issue about {BAD} was closed\n"
    push(LATER)
    assert find_base(LATER) == "base=\n"
    github.add_status(LATER, "failure", f"regressed: baseline; base {BAD}", at=BEGAN + timedelta(hours=2))
    assert notify().stdout == "issue 1001 was opened\n"
    assert f"<!-- range {BAD}..{LATER} -->" in github.issues[1]["body"], "the old one is settled"


def test_foreign_issues_are_kept(github, notify, push, regressed, find_base):
    """Anybody can write the mark; pull requests are listed among issues."""
    forged = f"{MARK}\n<!-- range {GONE}..{BAD} -->\n"
    others = [
        github.add_issue(forged, "stranger"),
        github.add_issue(f"> {forged}"),
        github.add_issue(forged, pull_request={}),
        github.add_issue(forged, user=None),
        github.add_issue(""),
    ]
    others[-1]["body"] = None
    before = [dict(each) for each in others]
    assert find_base(BAD) == "base=\n"
    assert notify().stdout == "issue 1005 was opened\n"
    push(LATER, state="success", base=GOOD)
    assert notify().stdout == "issue 1005 was closed\n"
    assert others == before


def test_closed_issue_of_a_stranger_settles_nothing(github, notify, regressed):
    github.close_issue(github.add_issue(f"{MARK}\n", "stranger"))
    assert notify().stdout == "issue 1001 was opened\n"


def test_status_by_somebody_else_is_no_verdict(github, notify, push, opened):
    push(LATER, state="success", base=GOOD, login="writer")
    assert notify().stdout == "issue 1000 is up to date\n"
    github.issues.clear()
    github.statuses.clear()
    github.add_status(BAD, "failure", f"regressed: baseline; base {GOOD}", login="writer")
    assert notify().stdout == "none of the newest commits of main has a verdict\n"
    assert github.issues == []


def test_second_issue_is_closed_with_the_first(github, notify, push, opened):
    """As where somebody has opened an old one again."""
    second = github.add_issue(opened["body"])
    push(LATER, state="success", base=GOOD)
    notify()
    assert (opened["state"], second["state"]) == ("closed", "closed")


def test_commits_of_a_merged_branch_do_not_count(github, notify, push):
    """GitHub lists them among the branch's."""
    push(GOOD, state="success", base="6a" * 20)
    github.parents = {LATER: (GOOD, BAD), BAD: (GOOD,), **github.parents}
    github.add_status(BAD, "failure", f"regressed: baseline; base {GOOD}")
    assert notify().stdout == f"{GOOD} has not regressed, and no issue is open\n"


def test_more_than_a_page_of_commits(github, notify, push, regressed):
    push(*names(150))
    assert notify().stdout == "issue 1000 was opened\n"
    asked = [each.split()[1] for each in github.asked]
    assert asked.count("/repos/arm-makers/arm/commits") == 2


def test_search_for_a_verdict_ends(github, notify, push, regressed):
    push(*names(250))
    assert notify().stdout == "none of the newest commits of main has a verdict\n"


def test_old_issue_is_found_on_a_later_page(github, notify, opened):
    for number in range(250):
        github.add_issue(f"{number}", "talker")
    assert notify().stdout == "issue 1000 is up to date\n"


def test_good_commit_that_was_pushed_away(github, notify, push, regressed):
    del github.parents[GOOD]
    github.parents[BAD] = ()
    assert notify().stdout == "issue 1000 was opened\n"
    (issue,) = github.issues
    assert "The range is unknown" in issue["body"]
    assert f"<!-- range ..{BAD} -->" in issue["body"]
    assert "ldos bisect" not in issue["body"]


def test_good_commit_that_is_pushed_away_later(github, notify, push, opened, find_base):
    del github.parents[GOOD]
    github.parents[BAD] = ()
    push(LATER)
    assert find_base(LATER) == "base=\n", "it cannot be compared with it"
    notify()
    assert "The range is unknown" in opened["body"]
    github.add_status(LATER, "success", f"passed; base {BAD}")
    assert notify().stdout == "issue 1000 was closed\n"
    assert github.comments[0]["body"] == f"main is as fast as before again: {LATER} passed."


def test_branch_is_put_back_to_the_good_commit(github, notify, opened):
    del github.parents[BAD]
    assert notify().stdout == "issue 1000 was closed\n"


@pytest.mark.parametrize("body", [f"{MARK}\r\nedited\r\n", f"{MARK}\n<!-- range x..y -->\n"])
def test_edited_text_is_written_again(github, notify, opened, body):
    before, opened["body"] = opened["body"], body
    assert notify().stdout == "issue 1000 was written again\n"
    assert opened["body"] == before


HOSTILE = "regressed: x`y``` @octocat #1 www.evil.example <img src=x> \u202e\n```\n# big"


def test_foreign_text_is_inert(github, notify, push):
    """It stands in one line of a block of code, which it cannot end; none of it becomes part of a command."""
    push(GOOD)
    push(BAD, state="failure", base=GOOD, text=HOSTILE)
    github.statuses[BAD][0]["target_url"] = "https://evil.example/actions/runs/1"
    notify()
    parts = github.issues[0]["body"].split("```")
    assert parts[1] == "text\nregressed: x'y''' @octocat #1 www.evil.example <img src=x> ??'''?# big\n"
    assert len(parts) == 3
    assert "evil" not in parts[0] + parts[2]
    assert "octocat" not in parts[0] + parts[2]
    assert "The run names the scenario" in parts[2]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("regressed: baseline", "baseline"),
        ("regressed: a, b, says the machine; not judged there: c, d", "a or b"),
        ("regressed: a, on ldos-lab-a, ldos-lab-b", "a"),
        ("regressed: a, cpu_l…", "a"),
        ('regressed: a, $(touch owned)", b', "a"),
        ("regressed, says the machine", ""),
        ("regressed: A; b", ""),
    ],
)
def test_scenarios_of_a_verdict(github, notify, push, text, shown):
    push(GOOD)
    push(BAD, state="failure", base=GOOD, text=text)
    notify()
    found = re.findall(r'pytest -m "(.*)" --ldos-base', github.issues[0]["body"])
    assert found == ([shown] if shown else [])


@pytest.mark.parametrize("place", ["GET commits", "GET issues", "GET compare", "POST issues"])
def test_refusal_by_github_is_an_error(github, notify, regressed, place):
    github.failures[place] = 403
    github.headers = {"X-Accepted-GitHub-Permissions": "issues=write"}
    done = notify()
    assert done.returncode == 1
    assert "GitHub answers 403: the job's token needs the right issues: write" in done.stderr
    assert github.issues == []


def test_interrupted_closing_is_not_repeated(github, notify, push, opened):
    """It is closed, without the comment."""
    push(LATER, state="success", base=GOOD)
    github.failures["POST"] = 502
    assert notify().returncode == 1
    github.failures.clear()
    assert notify().returncode == 0
    assert (opened["state"], github.comments) == ("closed", [])


@pytest.mark.parametrize("answer", [b"[]", b"{}", b'{"status": "ahead"}', b'{"status": "ahead", "ahead_by": "2"}'])
def test_invalid_comparison(github, notify, regressed, answer):
    """Never a range that GitHub has not confirmed."""
    github.failures["GET compare"] = answer
    done = notify()
    assert "Traceback" not in done.stderr
    assert done.returncode == 1 or "The range is unknown" in github.issues[0]["body"]


@pytest.mark.parametrize("answer", [b'[{"sha": "x"}]', b'[{"sha": "' + BAD.encode() + b'", "parents": ["x"]}]'])
def test_invalid_list_of_commits(github, notify, answer):
    github.failures["GET commits"] = answer
    assert notify().returncode == 1


def test_invalid_branch_is_refused(github, run_program):
    assert run_program("notify", "--repository", "arm-makers/arm", "--branch", "a?b").returncode == 2
    assert github.asked == []
