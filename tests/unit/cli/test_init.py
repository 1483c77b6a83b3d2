"""``ldos init``: it writes `examples/first_project`, and replaces no file."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from pytest_ldos.scenario.settings import read_toml
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
def test_init_writes_the_example(tmp_path, monkeypatch, directory):
    monkeypatch.chdir(tmp_path)
    done = run_ldos("init", *directory)
    assert (done.returncode, done.stderr) == (0, "")
    assert files_below(tmp_path.joinpath(*directory)) == files_below(EXAMPLE)
    assert ("cd 'arms/new one'" in done.stdout) == bool(directory)
    assert "pytest -m baseline" in done.stdout


def test_every_file_of_the_example_is_committed():
    listed = git(ROOT, "ls-files", "examples/first_project").split()
    assert {f"examples/first_project/{name}" for name in files_below(EXAMPLE)} == set(listed)


def printed_for(done, name: str) -> str:
    """Text to be added to a file."""
    found = re.search(
        rf"^kept {re.escape(name)}; add to it:\n\n(.*?)\n\n(?:wrote|kept|next)", done.stdout, re.MULTILINE | re.DOTALL
    )
    assert found, done.stdout
    return found[1]


def test_existing_files_are_kept_and_missing_ones_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mine = {
        "pyproject.toml": b'[project]\nname = "arm"\n\n[tool.pytest.ini_options]\naddopts = "-q"\n',
        ".gitignore": b"*.log\n.ldos/\n",
    }
    for name, content in mine.items():
        (tmp_path / name).write_bytes(content)
    done = run_ldos("init", ".")
    assert (done.returncode, done.stderr) == (0, "")
    assert files_below(tmp_path) == {**files_below(EXAMPLE), **mine}
    assert "wrote test_arm.py" in done.stdout
    assert "kept .gitignore; add to it:\n\n/.venv/\n__pycache__/\n\n" in done.stdout
    added = printed_for(done, "pyproject.toml")
    assert "[tool.pytest" not in added, "its table is there already"
    with (tmp_path / "pyproject.toml").open("a") as file:
        file.write(f"\n{added}\n")
    ours = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["tool"]["ldos"]
    assert tomllib.loads((tmp_path / "pyproject.toml").read_text())["tool"]["ldos"] == ours
    again = run_ldos("init", ".")
    assert "kept pyproject.toml, which already exists" in again.stdout


@pytest.mark.parametrize("newer", ["", "[tool.pytest]\n"])
def test_missing_pytest_tables_are_added(tmp_path, monkeypatch, newer):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "arm"\n{newer}')
    assert ("[tool.pytest.ini_options]" in printed_for(run_ldos("init"), "pyproject.toml")) == (not newer)


def test_settings_stay_in_their_own_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ldos.toml").write_text("trials = 3\n")
    done = run_ldos("init")
    assert not (tmp_path / "pyproject.toml").exists()
    with (tmp_path / "ldos.toml").open("a") as file:
        file.write(f"\n{printed_for(done, 'ldos.toml')}\n")
    found = read_toml(tmp_path)
    assert found.options == {"trials": 3}
    assert found.scenarios["busy_cell"].options["success_rate"] == 0.9


@pytest.mark.parametrize("content", [b"[tool.ldos\n", "trials = 3".encode("utf-16")])
def test_unreadable_settings_are_refused_before_writing(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_bytes(content)
    done = run_ldos("init")
    assert done.returncode == 2
    assert "pyproject.toml cannot be read" in done.stderr
    assert files_below(tmp_path) == {"pyproject.toml": content}


def test_written_workflow_is_the_one_to_copy():
    name = "request.yml"
    assert (EXAMPLE / ".github/workflows" / name).read_bytes() == (ROOT / "examples/ci/github" / name).read_bytes()
