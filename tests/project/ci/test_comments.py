"""The one comment of a report: made, written again, never repeated, and never somebody else's."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders.report_snapshots import FOLDER
from tests.fakes.github_api import BOT, TOKEN

ROOM = Path(__file__).parents[3] / ".ci" / "results"
MARK = "<!-- pytest-ldos report -->"
REPORT = FOLDER / "hostile.comment.md"
SHA = "1f" * 20


@pytest.fixture
def post(run_program):
    """Posts a report."""

    def run(*arguments: str, file: Path = REPORT, **changes: str):
        where = arguments or ("--pull-request", "12")
        return run_program("comment", file, "--repository", "arm-makers/arm", *where, **changes)

    return run


def test_the_first_report_is_a_comment(github, post):
    github.add("looks good", "maintainer")
    done = post()
    assert (done.returncode, done.stderr) == (0, "")
    assert [each["user"]["login"] for each in github.comments] == ["maintainer", BOT]
    assert github.comments[1]["body"] == REPORT.read_text("utf-8")
    assert github.asked[-1] == "POST /repos/arm-makers/arm/issues/12/comments"


def test_as_a_program(github):
    """With Python alone: nothing has to be installed where the token is."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", ROOM, "comment", REPORT, "--repository", "arm-makers/arm", "--pull-request", "12"],
        env={"GITHUB_API_URL": github.url, "GITHUB_TOKEN": TOKEN, "no_proxy": "*"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "pull request 12 got a comment\n", "")
    assert github.body_of(100) == REPORT.read_text("utf-8")


def test_later_reports_update_the_comment(github, post):
    for _ in range(3):
        assert post().returncode == 0
    done = post(file=FOLDER / "harmless.comment.md")
    assert done.stdout == "comment 100 of pull request 12 was written again\n"
    assert len(github.comments) == 1
    assert github.body_of(100) == (FOLDER / "harmless.comment.md").read_text("utf-8")


def test_foreign_comments_are_kept(github, post):
    """Anybody can write the mark, and quote it."""
    others = [
        github.add(f"{MARK}\nstolen", "stranger"),
        github.add(f"{MARK}\nof nobody", None),
        github.add(f"> {MARK}\nquoted", BOT),
        github.add(f"another bot's {MARK}", "dependabot[bot]"),
        github.add("", BOT),
    ]
    before = [github.body_of(number) for number in others]
    assert post().returncode == 0
    assert post().returncode == 0
    assert [github.body_of(number) for number in others] == before
    assert len(github.comments) == len(others) + 1


def test_own_comment_is_found_on_a_later_page(github, post):
    for number in range(250):
        github.add(f"comment {number}", "talker")
    ours = github.add(f"{MARK}\nold", BOT)
    assert post().returncode == 0
    assert github.body_of(ours) == REPORT.read_text("utf-8")
    assert [each.split()[0] for each in github.asked] == ["GET", "GET", "GET", "PATCH"]


@pytest.mark.parametrize("count", [100, 200])
def test_pages_that_are_just_full(github, post, count):
    for _ in range(count):
        github.add("x", "talker")
    assert post().returncode == 0
    assert len(github.comments) == count + 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422])
@pytest.mark.parametrize("method", ["GET", "POST", "PATCH"])
def test_refusal_by_github_is_an_error(github, post, method, status):
    if method == "PATCH":
        github.add(f"{MARK}\nold", BOT)
    github.failures[method] = status
    done = post()
    assert done.returncode == 1
    assert done.stderr.startswith(f"results: {method} issues/")
    assert done.stderr.endswith(f": GitHub answers {status}\n")
    assert [each.split()[0] for each in github.asked].count(method) == 1


BUSY = [
    (429, {}),
    (403, {"X-RateLimit-Remaining": "0"}),
    (403, {"Retry-After": "0"}),
    *((each, {}) for each in (500, 502, 503)),
]


@pytest.mark.parametrize(("status", "headers"), BUSY)
def test_temporary_github_failure_is_retried(github, post, status, headers):
    github.headers = headers
    github.failures["GET"] = [status, status, status]
    assert post().returncode == 0
    assert [each.split()[0] for each in github.asked] == ["GET"] * 4 + ["POST"]


@pytest.mark.parametrize(("status", "headers"), BUSY)
def test_lasting_github_failure_is_an_error(github, post, status, headers):
    github.headers = headers
    github.failures["GET"] = status
    done = post()
    assert done.returncode == 1
    assert f"GitHub answers {status}, also after 3 more attempts" in done.stderr
    assert len(github.asked) == 4


def test_githubs_retry_delay_is_respected(github, post, module_of, monkeypatch):
    """Never for longer than a job can wait."""
    waited = []
    monkeypatch.setattr(module_of("github_api").time, "sleep", waited.append)
    for seconds in ("7", "4000", "soon"):
        github.headers = {"Retry-After": seconds}
        github.failures["GET"] = [503]
        assert post().returncode == 0
    assert waited == [7.0, 120.0, 0.0]


def test_missing_right_of_a_token_is_named(github, post):
    github.headers = {"X-Accepted-GitHub-Permissions": "issues=write; pull_requests=write"}
    github.failures["POST"] = 403
    done = post()
    assert "the job's token needs the right issues: write; pull_requests: write" in done.stderr


@pytest.mark.parametrize("answer", [b"", b"<html>", b"{}", b'["x"]', b"null", b"\xff", b"[" * 100_000])
def test_invalid_response_is_an_error(github, post, answer):
    github.failures["GET"] = answer
    done = post()
    assert done.returncode == 1
    assert "the answer is no" in done.stderr
    assert "Traceback" not in done.stderr


def test_token_is_sent_only_to_github(github, post):
    github.failures["GET"] = 302
    done = post()
    assert done.returncode == 1
    assert github.asked == ["GET /repos/arm-makers/arm/issues/12/comments"]
    assert TOKEN not in done.stdout + done.stderr


def test_unreachable_server_is_an_error(post):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        done = post(GITHUB_API_URL=f"http://127.0.0.1:{unused.getsockname()[1]}")
    assert done.returncode == 1
    assert "no answer" in done.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_TOKEN", ""),
        ("GITHUB_TOKEN", "a\nX-Evil: 1"),
        ("GITHUB_API_URL", "http://evil.example"),
        ("GITHUB_API_URL", "https://api.github.com@evil.example"),
        ("GITHUB_API_URL", "file:///etc/passwd"),
    ],
)
def test_invalid_environment_is_refused(github, post, name, value):
    done = post(**{name: value})
    assert done.returncode == 1
    assert name in done.stderr
    assert github.asked == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no mark",
        f"\n{MARK}\n".encode(),
        f"{MARK}\n{MARK}\n".encode(),
        b"\xff",
        f"{MARK}\n".encode() + b"x" * 65_536,
    ],
)
def test_file_that_is_not_a_report(github, post, tmp_path, content):
    file = tmp_path / "comment.md"
    file.write_bytes(content)
    assert post(file=file).returncode == 1
    assert github.asked == []


@pytest.mark.parametrize(
    "arguments",
    [(), ("--pull-request", "0"), ("--pull-request", "../1"), ("--commit", "main"), ("--commit", SHA.upper())],
)
def test_invalid_call_is_refused(github, post, arguments):
    assert post("--author", BOT, *arguments).returncode == 2
    assert github.asked == []


def test_the_pull_request_of_a_merge_queue(github, post):
    ref = f"refs/heads/gh-readonly-queue/release/1.0/pr-77-{SHA}"
    assert post("--commit", SHA, "--ref", ref).stdout == "pull request 77 got a comment\n"


def test_the_pull_request_that_has_the_commit(github, post):
    github.open(5, SHA, SHA)["state"] = "closed"
    github.open(3, SHA, SHA)
    github.open(9, "2e" * 20, SHA)
    github.open(2, SHA, SHA)["number"] = "x"
    assert post("--commit", SHA, "--ref", "refs/heads/main").stdout == "pull request 3 got a comment\n"
    del github.pulls[1]
    post("--commit", SHA, "--ref", "refs/heads/gh-readonly-queue/x/pr-1;-")
    assert github.asked[-1].endswith("/issues/5/comments") or "comments/100" in github.asked[-1]


def test_a_commit_of_no_pull_request(github, post):
    done = post("--commit", SHA, "--ref", "refs/heads/main")
    assert done.returncode == 0
    assert "nothing to comment on" in done.stdout
    assert github.comments == []


def test_endless_response_is_refused(github, post, module_of, monkeypatch):
    github.add("x" * 1000, "talker")
    monkeypatch.setattr(module_of("github_api"), "_LARGEST_ANSWER", 1000)
    done = post()
    assert done.returncode == 1
    assert done.stderr == "results: GET issues/12/comments?per_page=100&page=1: the answer is too large\n"
