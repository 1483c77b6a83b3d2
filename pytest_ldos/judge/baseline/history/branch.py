"""Determines the branch of a checkout, as far as possible."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from pytest_ldos.host.checkout import ask_git

_OF_CI: Final = ("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME")
"""Variables with the branch name: CI systems check out a commit without its branch."""


def branch_of(checkout: Path) -> str:
    """The branch's name; empty outside git, or on a detached commit without a branch name from CI."""
    named = ask_git(checkout, "symbolic-ref", "--short", "--quiet", "HEAD")
    return named or next((name for variable in _OF_CI if (name := os.environ.get(variable, ""))), "")
