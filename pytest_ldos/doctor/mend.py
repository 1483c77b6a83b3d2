"""Applies the fixes that the user agrees to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pytest_ldos.base.errors import MendFailed
from pytest_ldos.doctor.changes import ChangeLog
from pytest_ldos.doctor.finding import Finding
from pytest_ldos.doctor.fix import Fix
from pytest_ldos.doctor.machine import Machine


def mend(
    findings: Sequence[Finding], machine: Machine, changes: ChangeLog, *, agrees: Callable[[Fix], bool]
) -> Iterator[str]:
    """Applies one fix after the other, and yields the result of each.

    If one fails, the others are tried all the same.

    Args:
        agrees: asked right before each fix.
    """
    for fix in [finding.fix for finding in findings if finding.fix is not None]:
        if not agrees(fix):
            continue
        try:
            fix.apply(machine, changes)
        except MendFailed as error:
            yield f"not done: {fix.description}: {error}"
        else:
            yield f"done: {fix.description}"


def describe_question(fix: Fix) -> str:
    """The question before a fix; says if the fix cannot be undone."""
    return f"{fix.description}?" if fix.is_reversible else f"{fix.description} (cannot be undone)?"
