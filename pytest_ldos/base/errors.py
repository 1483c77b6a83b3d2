"""Exceptions, each with a remedy, which the command line and the plugin print below the message.

A fault is an exception; a verdict (see `judge.gate.verdict`) is a value.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from pytest_ldos.base.text import Rendered, one_line, safe_lines


class LdosError(Exception):
    """Base class of pytest-ldos's exceptions.

    Untrusted text in it is sanitised at creation, so that it can be shown anywhere.

    Attributes:
        message: description of the fault in one line.
        remedy: one sentence that says what to do; ``""`` if there is nothing to do.
        details: optional lines between message and remedy, such as the ends of logs.
    """

    def __init__(self, message: str, *, remedy: str = "", details: str = "") -> None:
        self.message = one_line(message)
        self.remedy = one_line(remedy)
        self.details = safe_lines(details)
        super().__init__(self.message)

    def __str__(self) -> Rendered:
        return self._compose(self.details)

    @property
    def summary(self) -> Rendered:
        return self._compose("")

    def _compose(self, details: str) -> Rendered:
        remedy = f"  → {self.remedy}" if self.remedy else ""
        return Rendered("\n".join(part for part in (self.message, details, remedy) if part))


class ConfigurationError(LdosError):
    """An option, environment variable, marker or configuration key is wrong."""


class Unavailable(LdosError):
    """A requirement is not installed or not permitted here."""


class BringUpFailed(LdosError):
    """The stack did not become ready; the verdict of its scenario is ``infra``."""


class PreparationFailed(LdosError):
    """The environment of another revision could not be created; scenarios that need it get the verdict ``infra``."""


class LoadFailed(LdosError):
    """A load could not be applied."""


class RecordingFailed(LdosError):
    """The tracer refused a command or its session daemon ended."""


class MachineBusy(LdosError):
    """Another measuring session holds this machine."""


class MendFailed(LdosError):
    """A setting of this machine could not be changed, or a process or file could not be removed."""


class TraceUnreadable(LdosError):
    """A trace cannot be decoded.

    Attributes:
        offset: byte offset in `path`; ``None`` for metadata errors, which have line and column in `reason`.
    """

    def __init__(self, path: Path, offset: int | None, reason: str, *, remedy: str = "") -> None:
        place = f"{path}" if offset is None else f"{path}, byte {offset}"
        super().__init__(f"{place}: {reason}", remedy=remedy)
        self.path = path
        self.offset = offset
        self.reason = reason

    def __reduce__(self) -> tuple[type[TraceUnreadable], tuple[Path, int | None, str], dict[str, Any]]:
        """Supports pickling across processes."""
        return TraceUnreadable, (self.path, self.offset, self.reason), self.__dict__


class RecordUnreadable(LdosError):
    """A stored run, baseline, calibration or execution model is corrupt or of an unknown schema."""


class NotWritten(LdosError):
    """A file or folder could not be written, for example on a full disk."""


class ProfilingFailed(LdosError):
    """A profiler could not be started, ended early, or wrote unreadable output."""


class CalibrationFailed(LdosError):
    """The measurements do not determine this host's noise."""


class SelfTestFailed(LdosError):
    """The self-test has no injected fault to compare with."""


def refuse_unknown(given: Iterable[str], known: Collection[str], where: str) -> None:
    """Raises `ConfigurationError` for the first unknown name."""
    for name in given:
        if name not in known:
            raise ConfigurationError(f"unknown {where} '{name}'", remedy=suggest(str(name), known))


def suggest(name: str, known: Collection[str]) -> str:
    """``did you mean 'trials'?``, or all names if none is similar."""
    near = nearest(name, known)
    return f"did you mean '{near}'?" if near else f"known are: {', '.join(sorted(known))}"


def nearest(name: str, known: Collection[str]) -> str:
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.6)), "")


def require(condition: bool, message: str, *, remedy: str = "") -> None:
    """Raises `ConfigurationError` unless `condition`."""
    if not condition:
        raise ConfigurationError(message, remedy=remedy)
