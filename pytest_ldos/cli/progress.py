"""Progress of commands, on standard error.

On a terminal, one line is rewritten; elsewhere, each start has a line.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pytest_ldos.base.text import describe_duration, one_line
from pytest_ldos.campaign.order import Block
from pytest_ldos.campaign.versions.version import Version
from pytest_ldos.host.interference import Interference, describe_interference
from pytest_ldos.measure.trial.record import MotionTrial, Trial
from pytest_ldos.scenario.model import ScenarioSpec

_SPEED_PERIOD_S = 600.0
"""Trials take seconds; the remaining time is estimated from the last ten minutes."""


class MeasuringProgress:
    """See `BlockObserver` of trials and `SequenceObserver` of starts.

    A step is a motion, or a decision.
    """

    def __init__(self, steps: int, *, name: str) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._began_s = time.monotonic()
        self._steps = max(1, steps)
        self._made = 0
        self._name = one_line(name)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TimeRemainingColumn(compact=True),
            TextColumn("left"),
            console=Console(stderr=True),
            transient=True,
            speed_estimate_period=_SPEED_PERIOD_S,
        )
        self._task = self._bar.add_task(self._name, total=self._steps)

    @property
    def made(self) -> int:
        """Number of steps so far."""
        return self._made

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Shows the bar within the ``with`` block."""
        if not self._is_terminal:
            yield
            return
        with self._bar:
            yield

    def start(self, number: int, of: int) -> None:
        self.doing(f"start {number} of {of}")

    def doing(self, what: str) -> None:
        """Reports the begin of a long step."""
        text = f"{self._name}: {one_line(what)}"
        self._bar.update(self._task, description=text)
        if not self._is_terminal:
            sys.stderr.write(f"{text}{self._left()}\n")
            sys.stderr.flush()

    def note(self, text: str) -> None:
        line = f"{self._name}: {one_line(text)}"
        if self._is_terminal:
            self._bar.console.print(line, markup=False, highlight=False)
        else:
            sys.stderr.write(f"{line}\n")

    def begin(self, spec: ScenarioSpec, *, trials: range, warmup: int) -> None: ...

    def block(self, block: Block, version: Version) -> None: ...

    def waiting(self, what: str) -> None: ...

    def surroundings(self, found: Interference) -> None:
        text = describe_interference(found)
        if text:
            self.note(f"{text} (before the first trial)")

    def warm_up(self, number: int) -> None:
        self.step()

    def trial(self, trial: Trial) -> None:
        self.step()
        if not trial.succeeded:
            reason = (trial.message or "no reason given").splitlines()[0]
            self.note(f"trial {trial.index + 1} {trial.outcome}: {reason}")

    def repeat(self, trial: MotionTrial) -> None:
        self.note(f"trial {trial.index + 1} is made again: {describe_interference(trial.interference)}")

    def reset_again(self, failure: str) -> None:
        self.note(f"{failure}; trying again")

    def end(self) -> None: ...

    def step(self, count: int = 1) -> None:
        """Counts completed steps."""
        self._made += count
        self._bar.update(self._task, completed=self._made)

    def expect(self, steps: int) -> None:
        """Sets the largest number of remaining steps."""
        self._steps = max(1, self._made + steps)
        self._bar.update(self._task, total=self._steps)

    def _left(self) -> str:
        if not self._made:
            return ""
        left_s = (time.monotonic() - self._began_s) / self._made * max(0, self._steps - self._made)
        return f", about {describe_duration(left_s)} left"


_LINES: Final = 10
"""Number of lines of progress without a terminal."""

Steps = Callable[[str, int, int], None]
"""Called with a step's name, its completed amount, and its total."""


@contextmanager
def step_bar() -> Iterator[Steps]:
    """A progress bar for consecutive steps; nothing without a terminal."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("", total=1)

        def show(step: str, done: int = 0, of: int = 1) -> None:
            progress.update(task, description=step, completed=done, total=max(of, 1))

        yield show


@contextmanager
def trace_bar(count: int) -> Iterator[Callable[[], None]]:
    """A progress bar of traces; without a terminal, a line for each tenth."""
    if not sys.stderr.isatty():
        yield _LinesOfTraces(count)
        return
    columns = (TextColumn("traces"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=count)
        yield lambda: bar.advance(task)


class _LinesOfTraces:
    def __init__(self, count: int) -> None:
        self._made, self._count = 0, count

    def __call__(self) -> None:
        self._made += 1
        if self._made * _LINES // self._count > (self._made - 1) * _LINES // self._count:
            sys.stderr.write(f"{self._made} of {self._count} traces\n")
            sys.stderr.flush()
