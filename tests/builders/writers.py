"""Jobs of workflows that may write, and where the code that they run comes from.

A measured commit is a stranger's until it is merged: such a job runs what the default branch holds, or a commit that
somebody pinned, however its workflow was started or called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.builders.workflows import UNKNOWN, Start, resolve, starts_of

DEFAULT_BRANCH: Final = (
    "refs/heads/${{ github.event.repository.default_branch }}",
    "refs/heads/${{ github.event.repository.default_branch || github.ref_name }}",
)
"""The second is for workflows that a clock starts: alone its event names no repository, and it is of the default branch."""

OWN_REPOSITORY: Final = "${{ github.repository }}"
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")


def find_tool_faults(workflows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Every checkout in a job that may write, of what may be the measured commit; empty where all is well."""
    return [
        f"{' → '.join(start.chain)}, job {name}: may write, and checks out {found}"
        for path, workflow in workflows.items()
        for name, job in workflow.get("jobs", {}).items()
        if _may_write(job.get("permissions", workflow.get("permissions")))
        for start in starts_of(workflows, path)
        for found in _foreign_code(job, start)
    ]


def _may_write(permissions: Any) -> bool:
    """True if a token may write; without a word on it, the repository's settings decide."""
    if isinstance(permissions, dict):
        return "write" in permissions.values()
    return permissions not in ("read-all", {})


def _foreign_code(job: Mapping[str, Any], start: Start) -> Iterator[str]:
    for step in job.get("steps") or ():
        used = str(step.get("uses", ""))
        if used.startswith(("./", "$/")):
            yield f"an action of its own, {used}"
        if used.startswith("actions/checkout@"):
            given = step.get("with") or {}
            reference = _value(given, "ref", start)
            if reference not in DEFAULT_BRANCH and not _is_pinned(given, start):
                yield reference or "its own commit"


def _value(given: Mapping[str, Any], name: str, start: Start) -> str:
    """Value that a step is given; of an input, the caller's or its default."""
    value = str(given.get(name, ""))
    return value if value in DEFAULT_BRANCH else str(resolve(value, start.inputs))


def _is_pinned(given: Mapping[str, Any], start: Start) -> bool:
    """A whole commit of another repository, as a caller wrote it down."""
    repository = _value(given, "repository", start)
    is_other = repository not in ("", OWN_REPOSITORY) and UNKNOWN not in repository
    return is_other and _COMMIT.fullmatch(_value(given, "ref", start)) is not None
