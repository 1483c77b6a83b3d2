"""Progress of trials, and the profilers that watch them.

With ``-q``, each series of trials and each announcement has a line; with ``-qq``, there is no progress.
"""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, count
from pathlib import Path
from typing import Final

import pytest

from pytest_ldos.base.text import ns_to_ms, one_line
from pytest_ldos.campaign.blocks import BlockNotes, reason_of
from pytest_ldos.campaign.order import Block, Role
from pytest_ldos.campaign.versions.version import Version
from pytest_ldos.campaign.watching import FOLDER, Watching, write_watched, write_watched_difference
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.trial.record import MotionTrial
from pytest_ldos.measure.trial.rig import Watch
from pytest_ldos.plugin.messages import encodable, write_line
from pytest_ldos.scenario.model import ScenarioSpec, WatchSpec
from pytest_ldos.show.report.flame import DRAWINGS

_CLEAR: Final = "\r\x1b[K"
_BAR_WIDTH: Final = 20


class Progress(BlockNotes):
    """Shows trials in pytest's terminal. If one version `is_alone`, it is not named."""

    def __init__(self, config: pytest.Config, *, is_alone: bool = False) -> None:
        self._is_alone = is_alone
        self._capture = config.pluginmanager.getplugin("capturemanager")
        reporter = config.pluginmanager.getplugin("terminalreporter")
        self._reporter: pytest.TerminalReporter | None = reporter
        self._is_terminal = reporter is not None and sys.__stdout__ is not None and sys.__stdout__.isatty()
        self._is_shown = reporter is not None and reporter.verbosity >= 0
        self._is_quiet = reporter is not None and reporter.verbosity == -1
        self._is_at_line_start = False
        self._label = ""
        self._version = ""
        self._began_s = 0.0
        self._made = 0
        self._planned = 0
        self._warmup = 0
        self._trials = 0

    def announce(self, text: str) -> None:
        if self._is_quiet:
            self._write_quietly(text)
        else:
            self._begin_stage(text)

    def _begin_stage(self, text: str) -> None:
        if self._is_shown and not self._is_at_line_start:
            self._write("\n")
        self._show(text, is_kept=not self._is_terminal)

    def waiting(self, what: str) -> None:
        self.announce(f"waiting: {what}")

    def block(self, block: Block, version: Version) -> None:
        if self._is_alone:
            self._begin_stage("starting the stack" if block.number == 0 else "starting the stack again")
            return
        self._version = f", {block.role}"
        self._show(f"block {block.number + 1}: starting the stack of {version.name}", is_kept=not self._is_terminal)

    def begin(self, spec: ScenarioSpec, *, trials: range, warmup: int) -> None:
        self._label = f"{spec.name}{self._version}: "
        self._planned = len(trials) + warmup
        self._warmup = warmup
        self._trials = max(spec.trials, trials.stop)
        self._made = 0
        self._began_s = time.monotonic()
        if self._is_quiet:
            beforehand = f", {warmup} before them to warm up" if warmup else ""
            self._write_quietly(f"trials to make: {len(trials)}{beforehand}")

    def warm_up(self, number: int) -> None:
        self._made += 1
        self._show(f"{self._bar()} warm-up {number} of {self._warmup}", is_kept=False)

    def trial(self, trial: MotionTrial) -> None:
        self._made += 1
        line = f"trial {trial.index + 1} of {self._trials} {trial.outcome}"
        for metric in METRICS.values():  # by the client's stamps, because the trace is read after all trials
            latency_ns = metric.latency_ns(trial.stamps_ns) if metric.in_sweeps else None
            line += "" if latency_ns is None else f"  {metric.name} {ns_to_ms(latency_ns):.1f} ms"
        is_bad = not trial.succeeded
        if is_bad:
            line += f": {reason_of(trial)}"
        self._show(f"{self._bar()} {line}" if self._is_terminal and not is_bad else line, is_kept=is_bad)

    def note(self, text: str) -> None:
        self._show(text, is_kept=True)

    def end(self) -> None:
        self._label = ""
        if self._is_terminal and self._is_shown:
            self._write(_CLEAR)

    def _bar(self) -> str:
        filled = round(_BAR_WIDTH * self._made / self._planned)
        left_s = (time.monotonic() - self._began_s) / self._made * (self._planned - self._made)
        return f"{'█' * filled}{'░' * (_BAR_WIDTH - filled)} {left_s:3.0f} s left"

    def _show(self, text: str, *, is_kept: bool) -> None:
        """Writes a line, which the next one replaces on a terminal unless it is kept."""
        if not self._is_shown:
            return
        line = one_line(f"{self._label}{text}")
        if self._is_terminal:
            self._write(f"{_CLEAR}{line}" + ("\n" if is_kept else ""))
        elif is_kept or not self._label or "warm-up" not in text:
            self._write(f"{line}\n")
            self._is_at_line_start = True

    def _write_quietly(self, text: str) -> None:
        assert self._reporter is not None
        with self._uncaptured():
            if self._reporter._tw.width_of_current_line:  # noqa: SLF001 - of pytest's letters, without file names
                write_line(self._reporter, "")
            write_line(self._reporter, f"{self._label}{text}")

    def _write(self, text: str) -> None:
        with self._uncaptured():
            sys.stdout.write(encodable(text, sys.stdout))
            sys.stdout.flush()

    def _uncaptured(self) -> AbstractContextManager[None]:
        return nullcontext() if self._capture is None else self._capture.global_and_fixture_disabled()


class TrialWatch:
    """Watches the versions of a scenario, and writes profiles below a folder."""

    def __init__(self, spec: WatchSpec, folder: Path, title: str) -> None:
        self._spec = spec
        # with a number if trials of the same test already use the folder
        names = chain([FOLDER], (f"{FOLDER}-{number}" for number in count(2)))
        self._folder = next(each for name in names if not (each := folder / name).exists())
        self._title = title
        self._watched: dict[Role, Watching] = {}

    def of(self, role: Role) -> Watch | None:
        if self._spec.is_asked and role not in self._watched:
            self._watched[role] = Watching(self._spec)
        return self._watched.get(role)

    def write(self) -> list[str]:
        notes: list[str] = []
        is_interleaved = Role.BASE in self._watched
        for role, watching in self._watched.items():
            folder = self._folder / role if is_interleaved else self._folder
            title = f"{self._title}, {role}" if is_interleaved else self._title
            notes += write_watched(watching, folder, DRAWINGS, title=title)
        if is_interleaved and Role.HEAD in self._watched:
            base, head = self._watched[Role.BASE], self._watched[Role.HEAD]
            title = f"{self._title}: base → head"
            notes += write_watched_difference(base, head, self._folder, DRAWINGS, title=title)
        return notes
