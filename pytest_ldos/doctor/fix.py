"""Fixes that can be applied from here."""

from __future__ import annotations

from typing import Protocol

from pytest_ldos.doctor.changes import ChangeLog
from pytest_ldos.doctor.machine import Machine


class Fix(Protocol):
    """A change of this machine.

    Attributes:
        description: what it does, in the imperative: ``set the governor of 4 CPUs to performance``.
        is_reversible: true if `ChangeLog` can restore the former state.
    """

    @property
    def description(self) -> str: ...

    @property
    def is_reversible(self) -> bool: ...

    def apply(self, machine: Machine, changes: ChangeLog) -> None:
        """Applies the fix.

        Raises:
            MendFailed: it cannot be done; the remedy is the command that would.
        """
