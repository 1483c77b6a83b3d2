"""Shared parts of commands that start a stack: the machine, the metrics, and progress on standard error."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError, LdosError, Unavailable
from pytest_ldos.base.text import describe_duration, one_line
from pytest_ldos.campaign.blocks import BlockNotes, BlockObserver, reason_of
from pytest_ldos.campaign.estimate import Amount, Expected, describe_expected, duration_files, measured_cost
from pytest_ldos.campaign.starts import Site
from pytest_ldos.cli.say import complain, say, sources_here
from pytest_ldos.host.lock import measuring_lock
from pytest_ldos.host.temporary import terminated_like_interrupted
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.measure.load.protocol import load_available
from pytest_ldos.measure.metrics.catalogue import HOOK, Catalogue, built_in_of, catalogue_of, load_metrics
from pytest_ldos.measure.trial.record import Trial
from pytest_ldos.record.choose import recording_available
from pytest_ldos.robot.stack.choose import resolve_kind, stack_available
from pytest_ldos.scenario.model import ScenarioSpec
from pytest_ldos.scenario.settings import Sources


@contextmanager
def measuring(*, kept: str) -> Iterator[None]:
    """Holds the machine; a fault ends the command with its message and 11, an interrupt with what is kept."""
    try:
        wait_s = sources_here().wait_s(os.environ)
        with (
            measuring_lock(wait_s=wait_s, on_waiting=lambda holder: say(f"ldos: waiting for {holder}", err=True)),
            terminated_like_interrupted(),
        ):
            yield
    except ConfigurationError:
        raise
    except LdosError as error:
        complain(error)
        raise typer.Exit(exit_codes.INVALID) from None
    except KeyboardInterrupt:
        say("", err=True)
        say(f"ldos: interrupted; {kept}", err=True)
        raise typer.Exit(exit_codes.INTERRUPTED) from None


@dataclass(frozen=True)
class Request:
    """Settings of the project, names of the requested scenarios, and all metrics to measure."""

    sources: Sources
    names: Sequence[str]
    catalogue: Catalogue

    @classmethod
    def of(cls, scenarios: Iterable[str | None], metrics: str | None) -> Request:
        """Finds the scenarios, each once (``a+b`` is both at once); by default the first.

        Refuses requested profilers, which commands with many starts of the stack do not support.
        """
        sources = sources_here()
        if asked := [name for name in ("profile", "syscalls") if sources.value(name)]:
            raise ConfigurationError(
                f"{' and '.join(asked)} is set, but this command's starts are not watched",
                remedy=f"call it with {' '.join(f'LDOS_{name.upper()}=0' for name in asked)}; tests with "
                "@pytest.mark.ldos_sweep can be watched: pytest --ldos-profile",
            )
        wanted = list(filter(None, scenarios)) or sources.scenario_names()[:1]
        names = list(dict.fromkeys(sources.scenario(name, {}).name for name in wanted))
        built_in = built_in_of(sources.stack_spec())
        return cls(sources, names, catalogue_of(load_metrics(metrics), sources.toml.metrics, built_in=built_in))

    @property
    def output(self) -> Path:
        return self.sources.folder("output")

    def spec(self, **changes: Any) -> ScenarioSpec:
        """The first scenario with changes, in which no trials are added."""
        return replace(self.sources.scenario(self.names[0], {}), max_trials=0, **changes)

    def site(self, observer: BlockObserver) -> Site:
        return Site(output=self.output, paths=self.sources.toml.paths, catalogue=self.catalogue, observer=observer)

    def describe_cost(self, spec: ScenarioSpec, least: Amount, most: Amount) -> str:
        """A line on the expected duration of starts and trials, by earlier runs."""
        cost = measured_cost(duration_files(self.output), stack=resolve_kind(spec.stack).value, scenario=spec.name)
        return describe_expected([Expected(least, most, cost)])

    def policy(self, own: Iterable[str]) -> Policy:
        """The project's gate, for these metrics in addition to the built-in ones.

        Floors and required metrics may also name metrics that only its tests register.
        """
        gate = self.sources.toml.gate
        own = (*own, *gate.get("floors", {}), *gate.get("required", ()))
        return Policy.configured(gate, scenarios=len(self.names), own=own)


def refuse_unable(spec: ScenarioSpec) -> None:
    """Refuses to begin if the stack, the tracer or a load is not installed or not permitted."""
    loads = (load_available(load, spec.stack) for load in spec.loads)
    for each in (stack_available(spec.stack), recording_available(), *loads):
        if not each.ok:
            raise Unavailable(f"cannot measure: {each.reason}", remedy=each.remedy)


MetricsOption = Annotated[
    str | None,
    typer.Option(
        "--metrics", metavar="FILE_OR_MODULE", help=f"Metrics of your own: a conftest.py or module with {HOOK}()."
    ),
]


TimeLimitOption = Annotated[
    str | None, typer.Option(help="Time limit; starts that would exceed it are not begun: 90s, 10min, 1h.")
]


class MeasuringProgress(BlockNotes):
    """See `BlockObserver` of trials and `CampaignObserver` of starts. A step is a motion, or a decision."""

    def __init__(self, steps: int, *, name: str) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._began_s = time.monotonic()
        self._steps = max(1, steps)
        self.made = 0
        self._name = one_line(name)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TimeRemainingColumn(compact=True),
            TextColumn("left"),
            console=Console(stderr=True),
            transient=True,
            speed_estimate_period=600.0,  # seconds, as trials take some
        )
        self._task = self._bar.add_task(self._name, total=self._steps)

    @contextmanager
    def shown(self) -> Iterator[None]:
        if not self._is_terminal:
            yield
            return
        with self._bar:
            yield

    def doing(self, what: str) -> None:
        text = f"{self._name}: {one_line(what)}"
        self._bar.update(self._task, description=text)
        if not self._is_terminal:
            left = ""
            if self.made:
                left_s = (time.monotonic() - self._began_s) / self.made * max(0, self._steps - self.made)
                left = f", about {describe_duration(left_s)} left"
            sys.stderr.write(f"{text}{left}\n")
            sys.stderr.flush()

    def note(self, text: str) -> None:
        line = f"{self._name}: {one_line(text)}"
        if self._is_terminal:
            self._bar.console.print(line, markup=False, highlight=False)
        else:
            sys.stderr.write(f"{line}\n")

    def warm_up(self, number: int) -> None:
        self.step()

    def trial(self, trial: Trial) -> None:
        self.step()
        if not trial.succeeded:
            self.note(f"trial {trial.index + 1} {trial.outcome}: {reason_of(trial)}")

    def step(self, count: int = 1) -> None:
        self.made += count
        self._bar.update(self._task, completed=self.made)

    def expect(self, steps: int) -> None:
        self._steps = max(1, self.made + steps)
        self._bar.update(self._task, total=self._steps)


Steps = Callable[[str, int, int], None]
"""Called with a step's name, its completed amount, and its total."""


@contextmanager
def step_bar() -> Iterator[Steps]:
    """A progress bar for consecutive steps; nothing without a terminal."""
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("", total=1)

        def show(step: str, done: int = 0, of: int = 1) -> None:
            progress.update(task, description=step, completed=done, total=max(of, 1))

        yield show


@contextmanager
def trace_bar(count: int) -> Iterator[Callable[[], None]]:
    """A progress bar of traces; without a terminal, a line for each tenth."""
    if sys.stderr.isatty():
        columns = (TextColumn("traces"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("", total=count)
            yield lambda: bar.advance(task)
        return
    made, lines = 0, 10

    def advance() -> None:
        nonlocal made
        made += 1
        if made * lines // count > (made - 1) * lines // count:
            sys.stderr.write(f"{made} of {count} traces\n")
            sys.stderr.flush()

    yield advance
