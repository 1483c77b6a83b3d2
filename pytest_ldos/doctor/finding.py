"""Findings of the checks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pytest_ldos.doctor.fix import Fix


class Status(StrEnum):
    """Severity: an error prevents measurements, a warning disturbs or widens their results."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Finding:
    """One line of the diagnosis.

    Attributes:
        name: of the check.
        text: what was found.
        remedy: what to do about it; with status `OK`, what may be done.
        fix: carries it out, if that can be done from here.
    """

    name: str
    status: Status
    text: str
    remedy: str = ""
    fix: Fix | None = None


def ok(name: str, text: str, remedy: str = "") -> Finding:
    return Finding(name, Status.OK, text, remedy)


def warning(name: str, text: str, remedy: str, fix: Fix | None = None) -> Finding:
    return Finding(name, Status.WARNING, text, remedy, fix)


def error(name: str, text: str, remedy: str) -> Finding:
    return Finding(name, Status.ERROR, text, remedy)
