"""Progress of trials: on a terminal, one line is rewritten; elsewhere, each trial has a line.

With ``-q``, each series of trials has a line; with ``-qq``, there is no progress.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from pytest_ldos.base.text import ns_to_ms, one_line
from pytest_ldos.campaign.order import Block
from pytest_ldos.campaign.versions.version import Version
from pytest_ldos.host.interference import Interference, describe_interference
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.trial.record import MotionTrial
from pytest_ldos.plugin.messages import encodable, write_line
from pytest_ldos.scenario.model import ScenarioSpec

_CLEAR: Final = "\r\x1b[K"
_BAR_WIDTH: Final = 20


class Progress:
    """Reports progress; see `BlockObserver`.

    Args:
        is_alone: True if only one version is measured, which is then not named.
    """

    def __init__(self, config: pytest.Config, *, is_alone: bool = False) -> None:
        self._is_alone = is_alone
        self._capture = config.pluginmanager.getplugin("capturemanager")
        reporter = config.pluginmanager.getplugin("terminalreporter")
        self._reporter: pytest.TerminalReporter | None = reporter
        self._is_terminal = reporter is not None and sys.__stdout__ is not None and sys.__stdout__.isatty()
        self._is_shown = reporter is not None and reporter.verbosity >= 0
        self._is_brief = reporter is not None and reporter.verbosity == -1
        self._is_at_line_start = False
        self._label = ""
        self._version = ""
        self._began_s = 0.0
        self._made = 0
        self._planned = 0
        self._warmup = 0
        self._trials = 0

    def announce(self, text: str) -> None:
        """Reports the begin of a long step on a separate line."""
        if self._is_shown and not self._is_at_line_start:
            self._write("\n")
        self._show(text, is_kept=not self._is_terminal)

    def waiting(self, what: str) -> None:
        """Reports the parts that the start of the stack waits for."""
        self.announce(f"waiting: {what}")

    def block(self, block: Block, version: Version) -> None:
        """Reports the begin of a block; see `BlockObserver`."""
        if self._is_alone:
            self.announce("starting the stack" if block.number == 0 else "starting the stack again")
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
        if self._is_brief:
            beforehand = f", {warmup} before them to warm up" if warmup else ""
            self._write_line(f"{self._label}trials to make: {len(trials)}{beforehand}")

    def surroundings(self, found: Interference) -> None:
        text = describe_interference(found)
        if text:
            self._show(f"{text} (before the first trial)", is_kept=True)

    def warm_up(self, number: int) -> None:
        self._made += 1
        self._show(f"{self._bar()} warm-up {number} of {self._warmup}", is_kept=False)

    def trial(self, trial: MotionTrial) -> None:
        self._made += 1
        line = f"trial {trial.index + 1} of {self._trials} {trial.outcome}{_latencies(trial)}"
        is_bad = not trial.succeeded
        if is_bad:
            line += f": {trial.message.splitlines()[0] if trial.message else 'no reason given'}"
        self._show(f"{self._bar()} {line}" if self._is_terminal and not is_bad else line, is_kept=is_bad)

    def repeat(self, trial: MotionTrial) -> None:
        self._show(f"trial {trial.index + 1} is made again: {describe_interference(trial.interference)}", is_kept=True)

    def reset_again(self, failure: str) -> None:
        self._show(f"{failure}; trying again", is_kept=True)

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

    def _write_line(self, text: str) -> None:
        """Writes a line below pytest's progress letters, if there are any."""
        assert self._reporter is not None
        with self._uncaptured():
            if self._reporter._tw.width_of_current_line:  # noqa: SLF001 - only pytest knows it without file names
                write_line(self._reporter, "")
            write_line(self._reporter, text)

    def _write(self, text: str) -> None:
        with self._uncaptured():
            sys.stdout.write(encodable(text, sys.stdout))
            sys.stdout.flush()

    @contextmanager
    def _uncaptured(self) -> Iterator[None]:
        if self._capture is None:
            yield
            return
        with self._capture.global_and_fixture_disabled():
            yield


def _latencies(trial: MotionTrial) -> str:
    """Latencies by the client's stamps, because the trace is read after all trials."""
    metrics = [each for each in METRICS.values() if each.in_sweeps]
    taken = ((each.name, each.latency_ns(trial.stamps_ns)) for each in metrics)
    return "".join(f"  {name} {ns_to_ms(latency_ns):.1f} ms" for name, latency_ns in taken if latency_ns is not None)
