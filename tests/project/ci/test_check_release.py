"""``.ci/check_release.py``: version, changelog and tag."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
URLS = "\n".join(f'{name} = "https://example.org"' for name in ("Source", "Documentation", "Changelog", "Issues"))
SCRIPT = ROOT / ".ci" / "check_release.py"


@pytest.fixture
def check(tmp_path) -> Callable[..., tuple[int, str]]:
    def run(changelog: str, *tag: str, number: str = "1.2.0", urls: str = URLS) -> tuple[int, str]:
        text = f'[project]\nversion = "{number}"\n[project.urls]\n{urls}\n'
        (tmp_path / "pyproject.toml").write_text(text, "utf-8")
        (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{changelog}\n", "utf-8")
        command = [sys.executable, str(SCRIPT), *tag]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        return done.returncode, done.stderr

    return run


@pytest.mark.parametrize(
    "changelog", ["## [Unreleased]", "## [1.2.0] - 2026-11-22", "## [Unreleased]\n\n## [1.1.0] - 2026-01-01"]
)
def test_matching_versions_without_a_tag(check, changelog):
    assert check(changelog) == (0, "")


def test_a_release(check):
    assert check("## [1.2.0] - 2026-11-22", "v1.2.0") == (0, "")
    assert check("## [1.2.0rc1] - 2026-11-22", "v1.2.0rc1", number="1.2.0rc1") == (0, "")


@pytest.mark.parametrize(
    ("changelog", "tag", "number", "says"),
    [
        ("## [1.2.0] - 2026-11-22", "v1.3.0", "1.2.0", r"tag 'v1.3.0' is not the version's: .* it must be v1.2.0"),
        ("## [1.2.0] - 2026-11-22", "1.2.0", "1.2.0", r"it must be v1.2.0"),
        ("## [Unreleased]", "v1.2.0", "1.2.0", r"nothing is released as 1.2.0: rename ## \[Unreleased\]"),
        ("## [1.2.0]", "v1.2.0", "1.2.0", r"nothing is released as 1.2.0"),
        ("## [1.1.0] - 2026-01-01", "", "1.2.0", r"there is no section for 1.2.0"),
        ("## 1.2.0 - 2026-11-22", "", "1.2.0", r"is no heading of a version"),
        ("## [1.2.0] - 22.11.2026", "", "1.2.0", r"is no heading of a version"),
        ("## [1.2.0] - 2026-11-22\n\n## [1.2.0] - 2026-11-21", "", "1.2.0", r"two sections are for one version"),
        ("## [Unreleased]\n\n### News", "", "1.2.0", r"'### News' is no kind of change: write one of Added, "),
        ("## [Unreleased]", "", "next", r"version 'next' is none"),
        ("## [1.2.0] - 2026-11-22", "$(id)\n", "1.2.0", r"tag '\$\(id\)\\n' is not the version's"),
    ],
)
def test_mismatches_are_refused(check, changelog, tag, number, says):
    status, printed = check(changelog, *([tag] if tag else []), number=number)
    assert status == 1
    assert re.search(says, printed), printed


def test_release_names_its_sources(check):
    without = URLS.replace("Source", "Home")
    assert check("## [1.2.0] - 2026-11-22", urls=without) == (0, ""), "not needed before a release"
    status, printed = check("## [1.2.0] - 2026-11-22", "v1.2.0", urls=without)
    assert (status, printed) == (
        1,
        "check_release: pyproject.toml: [project.urls] lacks Source: write the repository's addresses\n",
    )


def test_this_project_agrees():
    done = subprocess.run(
        [sys.executable, str(SCRIPT)], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_version_is_written_once():
    """Everything that shows it asks for that of the installed distribution."""
    number = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert version("pytest-ldos") == number
    sources = [
        *(ROOT / "pytest_ldos").rglob("*.py"),
        ROOT / "CMakeLists.txt",
        ROOT / "README.md",
        ROOT / "CITATION.cff",
    ]
    assert [
        file
        for file in sources
        if re.search(rf"""(?m)["']{re.escape(number)}["']|^version:""", file.read_text("utf-8"))
    ] == []
