"""Calls of ``colcon build``: the command, its progress, and the package that failed.

Reference: colcon's event handler ``event_log`` writes one line an event to ``LOG/latest_build/events.log``:
``[seconds] (package) JobQueued|JobStarted|JobEnded: {…}``; ``JobEnded`` has the package's return code as ``rc``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pytest_ldos.campaign.versions.workspace import Workspace
from pytest_ldos.host.logs import last_lines
from pytest_ldos.scenario.base import BaseSpec

_LOG: Final = "log"
_EVENTS: Final = "latest_build/events.log"
_EVENT: Final = re.compile(rb"^\[[\d.]+\] \(([^)]*)\) (JobQueued|JobStarted|JobEnded): (.*)$", re.MULTILINE)
_RETURN_CODE: Final = re.compile(rb"'rc': ([^,}]+)")
_HANDLERS: Final = ("console_start_end+", "event_log+")


def build_command(spec: BaseSpec, workspace: Workspace, *, build: Path, folder: Path) -> list[str]:
    """The command that builds a workspace into ``folder/install``.

    Args:
        build: folder of the build's own files.
    """
    before, after = spec.build[: spec.verb_at], spec.build[spec.verb_at + 1 :]
    metas = [str(each) for each in workspace.metas()]
    return [
        *before,
        "--log-base",
        str(folder / _LOG),
        "build",
        *after,
        "--base-paths",
        *map(str, workspace.places),
        "--build-base",
        str(build),
        "--install-base",
        str(folder / "install"),
        "--event-handlers",
        *_HANDLERS,
        *(["--packages-up-to", *spec.packages_up_to] if spec.packages_up_to else []),
        *(["--metas", *metas] if metas and "--metas" not in spec.build else []),
    ]


@dataclass
class ColconLog:
    """Events of a build so far.

    Attributes:
        packages: all that are built.
        started: those that were begun, in order.
        codes: return codes of those that have ended.
    """

    folder: Path
    packages: list[str] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    codes: dict[str, str] = field(default_factory=dict)
    _offset: int = 0

    def news(self) -> list[str]:
        """The packages that were begun since the last time, each with its number."""
        known = len(self.started)
        self.read()
        begun = enumerate(self.started[known:], start=known + 1)
        return [f"package {number} of {len(self.packages)}, {name}" for number, name in begun]

    def read(self) -> None:
        """Reads what was written since the last time, up to the last whole line."""
        try:
            with (self.folder / _LOG / _EVENTS).open("rb") as file:
                file.seek(self._offset)
                text = file.read()
        except OSError:
            return
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        for match in _EVENT.finditer(whole):
            self._take(match.group(1).decode(errors="replace"), match.group(2), match.group(3))

    def _take(self, package: str, event: bytes, values: bytes) -> None:
        if event == b"JobQueued":
            self.packages.append(package)
        elif event == b"JobStarted":
            self.started.append(package)
        elif code := _RETURN_CODE.search(values):
            self.codes[package] = code.group(1).decode(errors="replace")

    def failed(self) -> str:
        """The first package whose build failed by itself; empty if none did."""
        return next((package for package, code in self.codes.items() if code.lstrip("-").isdigit() and int(code)), "")

    def end_of(self, package: str) -> str:
        """The end of what a package's build wrote as errors, otherwise of all that it wrote."""
        logs: Sequence[Path] = [
            self.folder / _LOG / "latest_build" / package / name for name in ("stderr.log", "stdout_stderr.log")
        ]
        return next((lines for log in logs if (lines := last_lines(log))), "")
