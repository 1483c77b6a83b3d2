"""A repository with our workflows and tools in it, branches that the tests choose, and measurements made up for its machines."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.builders.git import git

ROOT: Final = Path(__file__).parents[2]
UNKNOWN_KEY: Final = "queue: max"
"""GitHub has known it since May 2026, act's schema does not yet: a line of its own, left out of the copy."""

_MAKE: Final = """#!/bin/sh
[ "$1" != --no-print-directory ] || shift
[ "$1" != -C ] || cd "$2" || exit
mkdir -p .venv/bin
cp {programs}/measured-python .venv/bin/python
cp {programs}/measured-ldos .venv/bin/ldos
[ "$1" != docs ] || {{ mkdir -p docs/_build/html && printf 'the documentation' >docs/_build/html/index.html; }}
"""
_PYTHON: Final = """#!/bin/sh
case "$*" in
  "-m pytest "*)
    printf '%s\n' "$*" >>{programs}/measurements
    number=1
    until mkdir {prepared}/taken-$number 2>/dev/null; do number=$((number + 1)); done
    cp -R {prepared}/$number/. .
    exit
    ;;
esac
exec {python} "$@"
"""
_LDOS: Final = """#!/bin/sh
exec {python} -c 'from pytest_ldos.cli.main import run; run()' "$@"
"""


@dataclass(frozen=True)
class Scratch:
    """A repository, its origin, and what its machines measure.

    Attributes:
        work: a checkout.
        origin: what GitHub would hold.
        programs: stand-ins: `make` installs and builds nothing, a measurement is a folder that was prepared.
        prepared: what the first machine that measures leaves, and the second.
    """

    work: Path
    origin: Path
    programs: Path
    prepared: Path

    def commit(self, branch: str, files: Mapping[str, str], *, onto: str = "", subject: str = "") -> str:
        """Commits files to a branch of the origin; returns the commit's name."""
        git(self.work, "checkout", "--quiet", "-B", branch, *([onto] if onto else []))
        for name, text in files.items():
            (self.work / name).parent.mkdir(parents=True, exist_ok=True)
            (self.work / name).write_text(text, "utf-8")
        git(self.work, "add", "--all")
        git(self.work, "commit", "--quiet", "--allow-empty", "--message", subject or f"on {branch}")
        git(self.work, "push", "--quiet", "--force", "origin", branch)
        return git(self.work, "rev-parse", "HEAD").strip()

    def head(self, branch: str) -> str:
        """Commit that a branch of the origin is at."""
        return git(self.origin, "rev-parse", f"refs/heads/{branch}").strip()

    @property
    def measurements(self) -> str:
        """Options of pytest of each measurement, one a line."""
        file = self.programs / "measurements"
        return file.read_text("utf-8") if file.exists() else ""

    def forget(self) -> None:
        """Removes what was prepared for earlier measurements, and their options."""
        shutil.rmtree(self.prepared)
        self.prepared.mkdir()
        (self.programs / "measurements").unlink(missing_ok=True)

    def measures(self, number: int, files: Mapping[str, str]) -> None:
        """Prepares what a machine leaves: the first that measures, or the second."""
        for name, text in files.items():
            file = self.prepared / str(number) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")


def make_scratch(folder: Path) -> Scratch:
    """Our workflows and tools as they are now, on the branch main."""
    made = Scratch(*(folder / name for name in ("work", "origin.git", "programs", "prepared")))
    for path in (made.work, made.programs, made.prepared):
        path.mkdir(parents=True)
    _write_programs(made)
    shutil.copytree(ROOT / ".ci", made.work / ".ci", ignore=shutil.ignore_patterns("__pycache__"))
    script = Path("pytest_ldos/cli/measure_commit.py")
    _write(made.work / script, (ROOT / script).read_text("utf-8"))
    _write(made.work / "action.yml", (ROOT / "action.yml").read_text("utf-8"))
    for file in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        lines = [line for line in file.read_text("utf-8").splitlines() if line.strip() != UNKNOWN_KEY]
        _write(made.work / ".github" / "workflows" / file.name, "\n".join(lines) + "\n")
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main", str(made.origin))
    git(made.work, "init", "--quiet", "--initial-branch=main")
    git(made.work, "remote", "add", "origin", str(made.origin))
    made.commit("main", {})
    return made


def _write_programs(made: Scratch) -> None:
    values = {"programs": made.programs, "prepared": made.prepared, "python": sys.executable}
    for name, text in (("make", _MAKE), ("measured-python", _PYTHON), ("measured-ldos", _LDOS)):
        _write(made.programs / name, text.format(**values))
        (made.programs / name).chmod(0o755)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
