"""``ldos init``: what it writes is `examples/first_project`, and it replaces nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.command_line import run_ldos
from tests.builders.git import git

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples/first_project"


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and not {"__pycache__", ".ldos"} & set(file.parts)
    }


@pytest.mark.parametrize("directory", [(), ("arms/new one",)], ids=["here", "elsewhere"])
def test_it_writes_the_example(tmp_path, monkeypatch, directory):
    monkeypatch.chdir(tmp_path)
    done = run_ldos("init", *directory)
    assert (done.returncode, done.stderr) == (0, "")
    assert files_below(tmp_path.joinpath(*directory)) == files_below(EXAMPLE)
    assert ("cd 'arms/new one'" in done.stdout) == bool(directory)
    assert "pytest -m baseline" in done.stdout


def test_every_file_of_the_example_is_committed():
    listed = git(ROOT, "ls-files", "examples/first_project").split()
    assert {f"examples/first_project/{name}" for name in files_below(EXAMPLE)} == set(listed)


def test_nothing_is_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".gitignore").write_text("mine")
    done = run_ldos("init")
    assert done.returncode == 2
    assert "has .gitignore already; nothing was written" in done.stderr
    assert files_below(tmp_path) == {".gitignore": b"mine"}


def test_its_workflow_is_the_one_to_copy():
    name = "request.yml"
    assert (EXAMPLE / ".github/workflows" / name).read_bytes() == (ROOT / "examples/ci/github" / name).read_bytes()
