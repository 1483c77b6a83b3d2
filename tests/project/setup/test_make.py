"""``make`` sets up again when what the environment is made from changed, and only then: real make, no real set-up."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
NATIVE = "pytest_ldos/trace/ctf/native"

SETUP = """#!/bin/sh
echo "setup $*" >>calls
mkdir -p "$1/bin"
printf '#!/bin/sh\\necho "python $*" >>calls\\n' >"$1/bin/python"
chmod +x "$1/bin/python"
sh .ci/made-from .ci/setup >"$1/.ready"
"""
"""It leaves what the real one does."""

MEASURED = "python -m pytest -m baseline"
ANEW = "setup .venv changed"


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / ".ci").mkdir()
    for name in ("Makefile", "pyproject.toml", "CMakeLists.txt", ".ci/made-from"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / NATIVE).mkdir(parents=True)
    (tmp_path / NATIVE / "census.cpp").write_text("int count;\n")
    (tmp_path / "pytest_ldos/cli.py").write_text("")
    (tmp_path / ".ci/setup").write_text(SETUP)
    assert make(tmp_path) == [ANEW, MEASURED]
    return tmp_path


def make(folder, target="baseline"):
    """The commands that ran."""
    (folder / "calls").write_text("")
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "ARGS"))}
    done = subprocess.run(["make", target], cwd=folder, env=ours, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line.strip() for line in (folder / "calls").read_text().splitlines()]


def edit(file, before, after):
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after, 1))


def test_once(checkout):
    assert make(checkout) == [MEASURED]


def test_measurement_settings_are_no_reason_to_rebuild(checkout):
    with (checkout / "pyproject.toml").open("a") as file:
        file.write("\n[tool.ldos]\ntrials = 30\n\n[tool.ldos.stack.faults]\nplanning_delay_ms = 6\n")
    assert make(checkout) == [MEASURED]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("line-length = 120", "line-length = 100"),
        ("\ndependencies = [", "\n\n# of the package\ndependencies = ["),
        ('build-frontend = "build"', 'build-frontend = "pip"'),
    ],
)
def test_other_tables_and_comments_are_no_reason_to_rebuild(checkout, before, after):
    edit(checkout / "pyproject.toml", before, after)
    assert make(checkout) == [MEASURED]


def test_time_stamps_are_no_reason_to_rebuild(checkout):
    """A checkout of another commit and back writes all files again."""
    for file in checkout.rglob("*"):
        os.utime(file)
    assert make(checkout) == [MEASURED]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"nanobind>=2.4"', '"nanobind>=2.5"'),
        ('"numpy>=1.26"', '"numpy>=1.27"'),
        ('"mujoco>=3.2"', '"mujoco>=3.3"'),
        ('ldos = "pytest_ldos.plugin.hooks"', 'ldos = "pytest_ldos.plugin.other"'),
        ('build-dir = "build/', 'build-dir = "built/'),
    ],
)
def test_sources_and_dependencies_are_a_reason_to_rebuild(checkout, before, after):
    edit(checkout / "pyproject.toml", before, after)
    assert make(checkout) == [ANEW, MEASURED]
    assert make(checkout) == [MEASURED]


def test_build_settings_are_a_reason_to_rebuild(checkout):
    for name in ("CMakeLists.txt", f"{NATIVE}/census.cpp", ".ci/setup"):
        with (checkout / name).open("a") as file:
            file.write("\n")
        assert make(checkout) == [ANEW, MEASURED]


def test_added_and_removed_native_sources_are_a_reason_to_rebuild(checkout):
    (checkout / NATIVE / "a b.cpp").write_text("")
    assert make(checkout) == [ANEW, MEASURED]
    (checkout / NATIVE / "a b.cpp").rename(checkout / NATIVE / "c.cpp")
    assert make(checkout) == [ANEW, MEASURED]
    (checkout / NATIVE / "c.cpp").unlink()
    assert make(checkout) == [ANEW, MEASURED]


def test_missing_parts_are_searched_again(checkout):
    (checkout / ".venv/.missing").write_text("lttng-tools\n")
    assert make(checkout) == ["setup .venv", MEASURED]


def test_an_environment_of_an_earlier_version_is_made_again(checkout):
    """It has an empty stamp."""
    (checkout / ".venv/.ready").write_text("")
    assert make(checkout) == [ANEW, MEASURED]
    shutil.rmtree(checkout / ".venv")
    assert make(checkout, "setup") == [ANEW]


def test_setup_names_missing_parts(tmp_path):
    """All that tests and the decoder's build call, on a machine that has nothing but what every Debian has."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "cat", "dirname", "find", "grep"):
        (programs / name).symlink_to(shutil.which(name))
    command = ["sh", str(ROOT / ".ci/setup"), "venv"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PATH": str(programs)}, capture_output=True, text=True, check=False
    )
    missing = done.stderr.partition("missing: ")[2].partition("\n")[0].split()
    assert {"lttng-tools", "stress-ng", "g++", "cmake", "git", "curl", "bzip2", "xz-utils", "babeltrace2"} <= {*missing}
    assert f"sudo apt-get install {' '.join(missing)}" in done.stderr
    assert "python3 is missing" in done.stderr


def test_setup_without_packages_names_the_cause(tmp_path):
    """pip's own words end with "error: subprocess-exited-with-error"."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "cat", "dirname", "find", "grep"):
        (programs / name).symlink_to(shutil.which(name))
    (tmp_path / "venv/bin").mkdir(parents=True)
    for program, script in {"bin/python3": "exit 0", "bin/g++": "exit 0", "venv/bin/python": "exit 1"}.items():
        (tmp_path / program).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / program).chmod(0o755)
    command = ["sh", str(ROOT / ".ci/setup"), "venv", "changed"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PATH": str(programs)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "setup: pip could not install what is needed, see above; when it can (network, index, room), do this again"
    )
