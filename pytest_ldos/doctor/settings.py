"""Kernel settings that are changed by writing to files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_ldos.doctor.changes import ChangeLog
from pytest_ldos.doctor.machine import Machine


@dataclass(frozen=True)
class SetValues:
    """Writes values by place; see `Fix`. They last until they are undone or the machine restarts."""

    description: str
    values: Mapping[str, str]
    is_reversible: bool = True

    def apply(self, machine: Machine, changes: ChangeLog) -> None:
        for place, value in self.values.items():
            changes.set_value(machine, place, value)
