"""Runs the commands that make a version: each to its end, logged, and with everything that it started."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pytest_ldos.base.writable import writing
from pytest_ldos.campaign.versions.kept import Announce
from pytest_ldos.host.kept import KeptTree

_TO_THE_LOG: Final = ("sh", "-c", 'exec "$@" >&2', "sh")
_LOOK_EVERY_S: Final = 0.5

Describe = Callable[[float], Iterable[str]]
"""Texts that are to be announced after so many seconds of a command; one that repeats the last is left out."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """A command to be run.

    Attributes:
        folder: it is run there.
        log: gets the command and all that it writes.
        environment: replaces ours.
        holds: descriptors that stay open until everything that it started has ended, such as a lock's.
    """

    command: Sequence[str]
    folder: Path
    log: Path
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    holds: Sequence[int] = ()


def run_step(step: Step, *, describe: Describe, announce: Announce) -> int:
    """Runs a command to its end; returns its exit code. If we end before it does, so do it and all that it started."""
    with writing(step.log), step.log.open("a", encoding="utf-8") as log:
        log.write(f"$ {shlex.join(step.command)}\n")
    unset = [f"--unset={name}" for name in sorted(set(os.environ) - set(step.environment))]
    command = [*_TO_THE_LOG, "env", *unset, "-C", str(step.folder), *step.command]
    tree = KeptTree("setup", command, log=step.log, environment=step.environment, holds=step.holds)
    try:
        return _await_end(tree.child.process, describe, announce)
    finally:
        tree.stop()


def _await_end(process: subprocess.Popen[str], describe: Describe, announce: Announce) -> int:
    began_s, said, code = time.monotonic(), "", None
    while code is None:
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(_LOOK_EVERY_S)
        for text in describe(time.monotonic() - began_s):
            if text != said:
                announce(said := text)
    return code


def every_s(seconds: float, text: str) -> Describe:
    """A description that names the time that has passed, again and again after so many seconds."""
    return lambda passed_s: [f"{text}: {passed_s // seconds * seconds:.0f} s"] if passed_s >= seconds else []
