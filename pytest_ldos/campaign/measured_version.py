"""Identity of version and machine, which must be equal to combine results of several calls."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from pytest_ldos.host.checkout import CHANGED, ask_git, describe_commit
from pytest_ldos.host.fingerprint import take_fingerprint
from pytest_ldos.robot.stack.choose import describe_stack, stack_available
from pytest_ldos.scenario.model import StackSpec


def version_here(root: Path, stack: StackSpec, *, baselines: Path) -> Mapping[str, str]:
    """The project's commit, its uncommitted changes, and this machine's host class and packages.

    Args:
        root: root of the project.
        baselines: the repository's baselines; files recorded there do not count as changes.
    """
    commit = describe_commit(root)
    return {
        "commit": commit.removesuffix(CHANGED),
        "changes": _digest_of_changes(root, baselines) if commit.endswith(CHANGED) else "",
        **machine_here(stack),
    }


def _digest_of_changes(root: Path, baselines: Path) -> str:
    """Digest of the changes in the whole checkout, because measured code may be outside `root`."""
    asked = ("diff", "HEAD", "--", ":/")
    changes = ask_git(root, *asked, f":(exclude,literal){baselines}")
    if changes is None:  # git refuses a path outside its checkout
        changes = ask_git(root, *asked)
    return hashlib.sha256(changes.encode("utf-8", "surrogateescape")).hexdigest()[:12] if changes else ""


def machine_here(stack: StackSpec) -> dict[str, str]:
    """Host class and package versions; empty if the stack is not available."""
    if not stack_available(stack).ok:
        return {}
    info = describe_stack(stack)
    host = take_fingerprint(rmw=info.rmw, versions=info.versions)
    return {"host class": host.host_class, **{f"package {name}": each for name, each in sorted(host.versions.items())}}
