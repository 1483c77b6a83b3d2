"""Baselines become a branch: nothing but their files, and the address of the form that opens its pull request."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs

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
    """The output of the checking job."""
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

    def run(*, commit: str = SHA, base: str = "main", folder: Path = proposal, **changes: str):
        where = ("--repository", "arm-makers/arm", "--commit", commit, "--base", base)
        return run_program("propose", folder, *where, **changes)

    return run


FORM = f"https://github.com/arm-makers/arm/compare/main...{BRANCH}"


def test_a_branch_and_the_form_for_its_pull_request(github, propose, tmp_path):
    before = github.git.branches["main"]
    done = propose(GITHUB_STEP_SUMMARY=str(tmp_path / "summary"), GITHUB_RUN_ID="12")
    assert (done.returncode, done.stderr) == (0, "")
    (link,) = re.findall(r"https://\S+", done.stdout)
    form, _, query = link.partition("?")
    assert form == FORM
    assert parse_qs(query) == {
        "quick_pull": ["1"],
        "title": [f"Baselines of {SHA[:12]}"],
        "body": ["Old next to new: https://github.com/arm-makers/arm/actions/runs/12"],
    }
    summary = (tmp_path / "summary").read_text("utf-8")
    assert summary == f"**[Open a pull request for these baselines]({link})**\n\n{MARK}\nAll is well.\n"
    assert github.git.branches["main"] == before
    made = github.git.commits[github.git.branches[BRANCH]]
    assert (made["message"], made["parents"]) == (f"Baselines of {SHA}", [before])
    assert github.git.files(BRANCH) == {
        **OLD,
        f"baselines/{CLASS}/baseline.json": b"new",
        f"baselines/{CLASS}/cpu_load+msg_load.json": b"first",
    }
    assert no_pull_request_was_asked_for(github)


def no_pull_request_was_asked_for(github) -> bool:
    """A token that may open a pull request may also approve one."""
    return not any("pulls" in each for each in github.asked) and github.pulls == []


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
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"open its pull request here, unless there is one: {FORM}?" in done.stdout


def test_existing_proposal_is_updated(github, propose, proposal):
    assert propose().returncode == 0
    first = github.git.branches[BRANCH]
    write(proposal, f"baselines/{CLASS}/baseline.json", b"newer")
    assert f"the branch {BRANCH} has them" in propose().stdout
    assert no_pull_request_was_asked_for(github)
    assert github.git.commits[github.git.branches[BRANCH]]["parents"] == [first]
    assert github.git.forced == []


def test_foreign_commits_on_the_branch_are_kept(github, propose):
    mended = github.git.start(BRANCH, {**OLD, "NOTES.md": b"by hand"})
    assert propose().returncode == 0
    assert github.git.files(BRANCH)["NOTES.md"] == b"by hand"
    assert github.git.commits[github.git.branches[BRANCH]]["parents"] == [mended]


def test_identical_proposal_makes_no_commit(github, propose):
    propose()
    first = github.git.branches[BRANCH]
    assert propose().returncode == 0
    assert github.git.branches[BRANCH] == first


def test_existing_baselines_make_no_branch(github, propose, proposal):
    github.git.start("main", {f"baselines/{CLASS}/{name}.json": content for name, content in
                              (("baseline", b"new"), ("cpu_load+msg_load", b"first"))})  # fmt: skip
    assert propose().stdout == "main has these baselines already: nothing to propose\n"
    assert BRANCH not in github.git.branches


@pytest.mark.parametrize("run", ["", "x", "1)](https://evil.example", "\u0661"])
def test_invalid_run_is_not_linked(propose, run):
    done = propose(GITHUB_RUN_ID=run)
    assert done.returncode == 0
    assert done.stdout.endswith("&body=\n")


@pytest.mark.parametrize("server", ["http://evil.example", "https://x/)", "https://a@b", ""])
def test_invalid_server_is_refused(github, propose, server):
    done = propose(GITHUB_SERVER_URL=server)
    assert (done.returncode, done.stderr) == (1, "results: GITHUB_SERVER_URL is no address of a server\n")
    assert github.asked == []


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
def test_invalid_baseline_name_is_refused(github, propose, proposal, path):
    """All of it is refused: files next to a hostile one are not trusted."""
    write(proposal, path, b"new")
    done = propose()
    assert done.returncode == 1
    assert "which belongs to nothing that is taken" in done.stderr
    assert [each for each in github.asked if not each.startswith("GET")] == []


@pytest.mark.parametrize("kind", ["link", "link to a folder", "pipe", "the text is a link", "all of it is a link"])
def test_special_files_are_refused(github, propose, proposal, tmp_path, kind):
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


def test_too_many_files_are_refused(github, propose, proposal, module_of, monkeypatch):
    monkeypatch.setitem(module_of("proposals")._LIMITS, "largest", 6)
    assert "the files are too large" in propose().stderr
    monkeypatch.setitem(module_of("proposals")._LIMITS, "most", 1)
    assert "more than 1 files" in propose().stderr
    assert github.asked == []


def test_deeply_nested_folders_are_refused(propose, proposal):
    (proposal / "baselines" / "/".join("a" * 50)).mkdir(parents=True)
    assert "folders lie too deep" in propose().stderr


@pytest.mark.parametrize(
    "text", [b"", b"no mark", f"{MARK}\n{MARK}\n".encode(), b"\xff", f"{MARK}\n".encode() + b"x" * 65_536]
)
def test_invalid_text_is_refused(github, propose, proposal, text):
    (proposal / "pull_request.md").write_bytes(text)
    assert propose().returncode == 1
    assert github.asked == []


def test_empty_folder_proposes_nothing(propose, tmp_path):
    assert "cannot be read" in propose(folder=tmp_path / "none").stderr
    write(tmp_path / "empty", "pull_request.md", f"{MARK}\n".encode())
    (tmp_path / "empty" / "baselines").mkdir()
    assert "holds no file" in propose(folder=tmp_path / "empty").stderr


@pytest.mark.parametrize(
    "changes", [{"commit": "main"}, {"commit": "../" * 14}, {"base": "../x"}, {"base": "a b"}, {"base": "-x"}]
)
def test_invalid_call_is_refused(github, propose, changes):
    assert propose(**changes).returncode == 2
    assert github.asked == []


def test_missing_branch(propose):
    assert propose(base="gone").stderr == "results: there is no branch gone\n"


@pytest.mark.parametrize("where", ["POST git/blobs", "POST git/trees", "POST git/commits", "POST git/refs"])
@pytest.mark.parametrize("failure", [403, 422, 500, b"{}", b"null", b"<html>"])
def test_refusal_by_github_is_an_error(github, propose, where, failure):
    github.failures[where] = failure
    done = propose()
    if where == "POST git/refs" and failure in {b"{}", b"null"}:
        assert done.returncode == 0  # what it answers there is not read
        return
    assert done.returncode == 1
    assert done.stderr.startswith("results: ")
    assert TOKEN not in done.stdout + done.stderr
