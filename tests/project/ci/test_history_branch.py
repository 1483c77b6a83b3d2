"""The history's branch: read whole, written whole, never over a newer one; and starts of workflows."""

from __future__ import annotations

from pathlib import Path

import pytest

SERIES = "embedded/epyc_32-cores/baseline"
ROWS = b"PAR1 rows PAR1"
SHA = "1f" * 20
WHERE = ("--repository", "arm-makers/arm")


def write(folder: Path, path: str, content: bytes) -> None:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


@pytest.fixture
def history(tmp_path) -> Path:
    return tmp_path / "history"


def test_first_history_is_created(github, run_program, history):
    done = run_program("fetch-history", history, *WHERE)
    assert (done.returncode, done.stdout) == (0, "0 files of no history yet\n")
    assert (history / "made-from").read_text("utf-8") == "\n"
    write(history, f"rows/{SERIES}/merged-runs.parquet", ROWS)
    done = run_program("keep-history", history, *WHERE)
    assert (done.returncode, done.stdout) == (0, "ldos-history has 1 files of 14 bytes\n")
    assert github.git.files("ldos-history") == {f"{SERIES}/merged-runs.parquet": ROWS}


def test_next_history_replaces_it_without_a_parent(github, run_program, history):
    start = github.git.start("ldos-history", {f"{SERIES}/a.parquet": ROWS, f"{SERIES}/pin.json": b"{}"})
    assert run_program("fetch-history", history, *WHERE).stdout == f"2 files of {start}\n"
    assert (history / f"rows/{SERIES}/a.parquet").read_bytes() == ROWS
    (history / f"rows/{SERIES}/a.parquet").unlink()
    write(history, f"rows/{SERIES}/merged-runs.parquet", b"PAR1 more PAR1")
    assert run_program("keep-history", history, *WHERE).returncode == 0
    assert github.git.files("ldos-history") == {
        f"{SERIES}/merged-runs.parquet": b"PAR1 more PAR1",
        f"{SERIES}/pin.json": b"{}",
    }
    assert github.git.commits[github.git.branches["ldos-history"]]["parents"] == []
    assert github.git.forced == ["ldos-history"]


def test_history_stored_meanwhile_is_not_overwritten(github, run_program, history):
    run_program("fetch-history", history, *WHERE)
    write(history, f"rows/{SERIES}/merged-runs.parquet", ROWS)
    other = github.git.start("ldos-history", {f"{SERIES}/other.parquet": ROWS})
    done = run_program("keep-history", history, *WHERE)
    assert done.returncode == 1
    assert done.stderr == f"results: ldos-history is at {other} now, not at nothing: run this workflow again\n"
    assert github.git.branches["ldos-history"] == other


def test_deleted_history_is_restarted(github, run_program, history, tmp_path):
    """Not by the run that had read it: somebody may be putting it back."""
    start = github.git.start("ldos-history", {f"{SERIES}/a.parquet": ROWS})
    run_program("fetch-history", history, *WHERE)
    del github.git.branches["ldos-history"]
    done = run_program("keep-history", history, *WHERE)
    assert done.stderr == f"results: ldos-history is at nothing now, not at {start}: run this workflow again\n"
    again = tmp_path / "again"
    assert run_program("fetch-history", again, *WHERE).stdout == "0 files of no history yet\n"
    write(again, f"rows/{SERIES}/merged-runs.parquet", ROWS)
    assert run_program("keep-history", again, *WHERE).returncode == 0
    assert github.git.files("ldos-history") == {f"{SERIES}/merged-runs.parquet": ROWS}


def test_other_files_of_the_branch_are_not_read(github, run_program, history):
    """Anybody who can push can write there."""
    others = [
        "README.md",
        "../x/y/z.parquet",
        f"{SERIES}/../../../../x.parquet",
        f"/{SERIES}/x.parquet",
        f"{SERIES}/x.py",
    ]
    github.git.start("ldos-history", {**dict.fromkeys(others, b"x"), f"{SERIES}/a.parquet": ROWS})
    assert run_program("fetch-history", history, *WHERE).returncode == 0
    assert sorted(each.name for each in history.rglob("*") if each.is_file()) == ["a.parquet", "made-from"]


@pytest.mark.parametrize("mode", ["120000", "100755", "160000", "040000"])
def test_special_files_are_not_read(github, run_program, history, mode):
    start = github.git.start("ldos-history", {f"{SERIES}/a.parquet": ROWS, f"{SERIES}/b.parquet": b"/etc/passwd"})
    tree = github.git.trees[github.git.commits[start]["tree"]]
    tree[f"{SERIES}/b.parquet"] = (mode, tree[f"{SERIES}/b.parquet"][1])
    assert run_program("fetch-history", history, *WHERE).stdout == f"1 files of {start}\n"
    assert not (history / f"rows/{SERIES}/b.parquet").exists()


def test_a_branch_that_is_too_large(github, run_program, history, module_of, monkeypatch):
    monkeypatch.setattr(module_of("branches"), "_LARGEST", 10)
    github.git.start("ldos-history", {f"{SERIES}/a.parquet": ROWS})
    assert "more than 1000 files or 10 bytes" in run_program("fetch-history", history, *WHERE).stderr
    assert not history.exists()


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (f"rows/{SERIES}/x.parquet", b"PK\x03\x04"),
        (f"rows/{SERIES}/x.parquet", b""),
        (f"rows/{SERIES}/x.sh", ROWS),
        ("rows/x.parquet", ROWS),
        ("rows/.github/workflows/x/y.parquet", ROWS),
        (f"rows/{SERIES}/deeper/x.parquet", ROWS),
        ("made-from", b"main\n"),
        ("made-from", b"\xff"),
    ],
)
def test_other_files_are_not_stored(github, run_program, history, path, content):
    write(history, "made-from", b"\n")
    write(history, f"rows/{SERIES}/merged-runs.parquet", ROWS)
    write(history, path, content)
    assert run_program("keep-history", history, *WHERE).returncode == 1
    assert [each for each in github.asked if not each.startswith("GET")] == []


def test_a_link_is_not_kept(github, run_program, history, tmp_path):
    write(history, "made-from", b"\n")
    write(history, f"rows/{SERIES}/merged-runs.parquet", ROWS)
    (history / f"rows/{SERIES}/x.parquet").symlink_to(tmp_path / "secret")
    assert "neither file nor folder" in run_program("keep-history", history, *WHERE).stderr
    assert github.asked == []


@pytest.mark.parametrize(
    "answer", [b'{"encoding": "utf-8", "content": "x"}', b'{"encoding": "base64", "content": "?"}', b"[]"]
)
def test_response_without_a_file(github, run_program, history, answer):
    github.git.start("ldos-history", {f"{SERIES}/a.parquet": ROWS})
    github.failures["GET git/blobs"] = answer
    done = run_program("fetch-history", history, *WHERE)
    assert done.returncode == 1
    assert "is not in base64" in done.stderr


def test_a_workflow_is_started_for_a_commit(github, run_program):
    done = run_program("start", "explore.yml", *WHERE, "--commit", SHA, "--ref", "main")
    assert (done.returncode, done.stdout) == (0, f"explore.yml was started for {SHA}\n")
    assert github.started == [("explore.yml", {"ref": "main", "inputs": {"sha": SHA}})]


@pytest.mark.parametrize(
    "arguments",
    [
        ("../x.yml", *WHERE, "--commit", SHA, "--ref", "main"),
        ("explore.yml", *WHERE, "--commit", "main", "--ref", "main"),
        ("explore.yml", *WHERE, "--commit", SHA, "--ref", "a b"),
        ("explore.yml", "--repository", "../x", "--commit", SHA, "--ref", "main"),
    ],
)
def test_invalid_start_is_refused(github, run_program, arguments):
    assert run_program("start", *arguments).returncode == 2
    assert github.asked == []


def test_a_start_that_github_refuses(github, run_program):
    github.failures["POST"] = 403
    done = run_program("start", "explore.yml", *WHERE, "--commit", SHA, "--ref", "main")
    assert done.returncode == 1
    assert done.stderr == "results: POST actions/workflows/explore.yml/dispatches: GitHub answers 403\n"
