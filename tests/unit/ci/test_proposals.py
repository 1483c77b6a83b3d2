"""Baselines become a pull request: nothing but their files, on a branch of their own, and one pull request a commit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders.ci_rooms import ROOM
from tests.fakes.github_api import TOKEN

SHA = "1f" * 20
BRANCH = f"baselines/{SHA}"
MARK = "<!-- pytest-ldos baselines -->"
CLASS = "embedded/epyc_32-cores_smt-off"
OLD = {"README.md": b"read me", f"baselines/{CLASS}/baseline.json": b"old", f"baselines/{CLASS}/kept.json": b"kept"}


@pytest.fixture
def proposal(tmp_path) -> Path:
    """What the job that checks has left."""
    folder = tmp_path / "received"
    write(folder, f"baselines/{CLASS}/baseline.json", b"new")
    write(folder, f"baselines/{CLASS}/cpu_load+msg_load.json", b"first")
    write(folder, "pull_request.md", f"{MARK}\nAll is well.\n".encode())
    return folder


def write(folder: Path, path: str, content: bytes) -> None:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


@pytest.fixture
def propose(run_program, github, proposal):
    github.git.start("main", OLD)

    def run(*, commit: str = SHA, base: str = "main", folder: Path = proposal):
        where = ("--repository", "arm-makers/arm", "--commit", commit, "--base", base)
        return run_program("propose", folder, *where)

    return run


def test_a_branch_and_a_pull_request(github, propose):
    before = github.git.branches["main"]
    done = propose()
    assert (done.returncode, done.stdout, done.stderr) == (0, "pull request 40 was opened\n", "")
    assert github.git.branches["main"] == before
    made = github.git.commits[github.git.branches[BRANCH]]
    assert (made["message"], made["parents"]) == (f"Baselines of {SHA}", [before])
    assert github.git.files(BRANCH) == {
        **OLD,
        f"baselines/{CLASS}/baseline.json": b"new",
        f"baselines/{CLASS}/cpu_load+msg_load.json": b"first",
    }
    (pull,) = github.pulls
    assert (pull["title"], pull["head"]["ref"], pull["base"]["ref"]) == (f"Baselines of {SHA[:12]}", BRANCH, "main")
    assert pull["body"] == f"{MARK}\nAll is well.\n"


def test_as_a_program(github, proposal):
    """With Python alone, and nothing of the folder that it is started in."""
    github.git.start("main", OLD)
    write(proposal, "../argparse.py", b"raise SystemExit('owned')")
    where = ["--repository", "arm-makers/arm", "--commit", SHA, "--base", "main"]
    done = subprocess.run(
        [sys.executable, "-I", "-S", ROOM, "propose", proposal, *where],
        cwd=proposal.parent,
        env={"GITHUB_API_URL": github.url, "GITHUB_TOKEN": TOKEN, "no_proxy": "*"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "pull request 40 was opened\n", "")


def test_again_it_is_brought_up_to_date(github, propose, proposal):
    assert propose().returncode == 0
    first = github.git.branches[BRANCH]
    write(proposal, f"baselines/{CLASS}/baseline.json", b"newer")
    write(proposal, "pull_request.md", f"{MARK}\nAnew.\n".encode())
    assert propose().stdout == "pull request 40 was brought up to date\n"
    assert len(github.pulls) == 1
    assert github.pulls[0]["body"] == f"{MARK}\nAnew.\n"
    assert github.git.commits[github.git.branches[BRANCH]]["parents"] == [first]
    assert github.git.forced == []


def test_what_somebody_added_to_the_branch_stays(github, propose):
    mended = github.git.start(BRANCH, {**OLD, "NOTES.md": b"by hand"})
    assert propose().returncode == 0
    assert github.git.files(BRANCH)["NOTES.md"] == b"by hand"
    assert github.git.commits[github.git.branches[BRANCH]]["parents"] == [mended]


def test_the_same_again_is_no_commit(github, propose):
    propose()
    first = github.git.branches[BRANCH]
    assert propose().returncode == 0
    assert github.git.branches[BRANCH] == first


def test_what_is_there_already_is_no_pull_request(github, propose, proposal):
    github.git.start("main", {f"baselines/{CLASS}/{name}.json": content for name, content in
                              (("baseline", b"new"), ("cpu_load+msg_load", b"first"))})  # fmt: skip
    assert propose().stdout == "main has these baselines already: nothing to propose\n"
    assert github.pulls == []
    assert BRANCH not in github.git.branches


def test_a_pull_request_of_somebody_else_is_left_alone(github, propose):
    """A fork's branch can have the same name."""
    github.open_pull(head=BRANCH, repository="arm-makers/other")
    github.open_pull(head="topic")
    github.open_pull(head=BRANCH, base="release")
    before = [dict(each) for each in github.pulls]
    assert propose().stdout == "pull request 43 was opened\n"
    assert github.pulls[:3] == before


HOSTILE = [
    ".github/workflows/steal.yml",
    "baselines/steal.yml",
    "baselines/embedded/baseline.json",
    "baselines/embedded/epyc/deeper/baseline.json",
    "baselines/embedded/epyc/baseline.pinned.json",
    "baselines/embedded/epyc/baseline.calibration.json",
    "baselines/embedded/epyc/.hidden.json",
    "baselines/embedded/epyc/baseline.py",
    "baselines/embedded/epyc/baseline.json\n",
    "baselines/embedded/..epyc/baseline.json",
    "baselines/embedded/-rf/baseline.json",
    "baselines/embedded/<img src=x>/baseline.json",
    "baselines/embedded/$(touch owned)/baseline.json",
    "baselines/embedded/épyc/baseline.json",
    "baselines/.git/hooks/post-checkout.json",
    "conftest.py",
]


@pytest.mark.parametrize("path", HOSTILE)
def test_a_name_that_is_none_of_a_baseline(github, propose, proposal, path):
    """All of it is refused: what is beside a hostile file is no better."""
    write(proposal, path, b"new")
    done = propose()
    assert done.returncode == 1
    assert "which belongs to nothing that is taken" in done.stderr
    assert [each for each in github.asked if not each.startswith("GET")] == []


@pytest.mark.parametrize("kind", ["link", "link to a folder", "pipe", "the text is a link", "all of it is a link"])
def test_what_is_no_file(github, propose, proposal, tmp_path, kind):
    secret = tmp_path / "secret.json"
    secret.write_text(f"{MARK}\n", "utf-8")
    place = proposal / "baselines" / CLASS / "x.json"
    if kind == "link":
        place.symlink_to(secret)
    elif kind == "link to a folder":
        (proposal / "baselines" / "linked").symlink_to(tmp_path)
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "all of it is a link":
        (proposal / "baselines").rename(tmp_path / "elsewhere")
        (proposal / "baselines").symlink_to(tmp_path / "elsewhere")
    else:
        (proposal / "pull_request.md").unlink()
        (proposal / "pull_request.md").symlink_to(secret)
    done = propose()
    assert done.returncode == 1
    assert [each for each in github.asked if not each.startswith("GET")] == []


def test_too_much(github, propose, proposal, module_of, monkeypatch):
    monkeypatch.setitem(module_of("proposals")._LIMITS, "largest", 6)
    assert "the files are too large" in propose().stderr
    monkeypatch.setitem(module_of("proposals")._LIMITS, "most", 1)
    assert "more than 1 files" in propose().stderr
    assert github.asked == []


def test_folders_in_folders_without_end(propose, proposal):
    (proposal / "baselines" / "/".join("a" * 50)).mkdir(parents=True)
    assert "folders lie too deep" in propose().stderr


@pytest.mark.parametrize(
    "text", [b"", b"no mark", f"{MARK}\n{MARK}\n".encode(), b"\xff", f"{MARK}\n".encode() + b"x" * 65_536]
)
def test_a_text_that_is_none(github, propose, proposal, text):
    (proposal / "pull_request.md").write_bytes(text)
    assert propose().returncode == 1
    assert github.asked == []


def test_nothing_is_nothing_to_propose(propose, tmp_path):
    assert "cannot be read" in propose(folder=tmp_path / "none").stderr
    write(tmp_path / "empty", "pull_request.md", f"{MARK}\n".encode())
    (tmp_path / "empty" / "baselines").mkdir()
    assert "holds no file" in propose(folder=tmp_path / "empty").stderr


@pytest.mark.parametrize(
    "changes", [{"commit": "main"}, {"commit": "../" * 14}, {"base": "../x"}, {"base": "a b"}, {"base": "-x"}]
)
def test_a_call_that_is_wrong(github, propose, changes):
    assert propose(**changes).returncode == 2
    assert github.asked == []


def test_a_branch_that_is_not_there(propose):
    assert propose(base="gone").stderr == "results: there is no branch gone\n"


@pytest.mark.parametrize(
    "where", ["POST git/blobs", "POST git/trees", "POST git/commits", "POST git/refs", "POST pulls"]
)
@pytest.mark.parametrize("failure", [403, 422, 500, b"{}", b"null", b"<html>"])
def test_what_github_refuses_is_an_error(github, propose, where, failure):
    github.failures[where] = failure
    done = propose()
    if where == "POST git/refs" and failure in {b"{}", b"null"}:
        assert done.returncode == 0  # what it answers there is not read
        return
    assert done.returncode == 1
    assert done.stderr.startswith("results: ")
    assert ("allow GitHub Actions to create pull requests" in done.stderr) == (
        where == "POST pulls" and failure not in {b"{}", b"null"}
    )
    assert TOKEN not in done.stdout + done.stderr
