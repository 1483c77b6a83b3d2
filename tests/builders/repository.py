"""A git repository with a project, for tests that need revisions."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

_IDENTITY = ("-c", "user.name=Tester", "-c", "user.email=tester@example.org", "-c", "commit.gpgsign=false")


@dataclass
class Repository:
    path: Path

    @classmethod
    def create(cls, path: Path) -> Repository:
        path.mkdir(parents=True, exist_ok=True)
        made = cls(path)
        made.git("init", "--quiet", "--initial-branch=main")
        return made

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.path), *_IDENTITY, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, **files: str) -> str:
        """Commits files (a ``_`` before the suffix stands for a dot) and returns the commit, abbreviated."""
        for name, text in files.items():
            (self.path / name.replace("_", ".")).write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=change", "--allow-empty")
        return self.git("rev-parse", "--short=12", "HEAD")
