"""Groups trials of one version by stack start, in chronological order: the raw data of a calibration."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_ldos.measure.trial.record import Trial, TrialSet


@dataclass(frozen=True)
class Start:
    """The trials of one stack start.

    Attributes:
        run: number of its run; different runs were measured at different times.
    """

    run: int
    trials: tuple[Trial, ...]


def template_of(runs: Sequence[TrialSet]) -> TrialSet:
    """The first run, with the metrics of all runs."""
    metrics = {metric.name: metric for run in runs for metric in run.metrics}
    return dataclasses.replace(runs[0], metrics=tuple(metrics.values()))


def starts_of(runs: Iterable[TrialSet]) -> tuple[Start, ...]:
    """The starts of some runs, in chronological order; starts without trials are left out."""
    found = []
    for number, trials in enumerate(runs):
        blocks = dict.fromkeys(trial.block for trial in trials.trials)
        found += [Start(number, tuple(each for each in trials.trials if each.block == block)) for block in blocks]
    return tuple(found)


def assemble(template: TrialSet, starts: Sequence[tuple[int, Sequence[Trial]]], *, session: str = "") -> TrialSet:
    """Builds a trial set as if it had been measured in these blocks, given as block number and trials."""
    trials: list[Trial] = []
    for block, members in starts:
        trials += [
            dataclasses.replace(trial, index=len(trials) + offset, block=block) for offset, trial in enumerate(members)
        ]
    spec = dataclasses.replace(template.spec, trials=max(1, len(trials)))
    return dataclasses.replace(
        template, spec=spec, trials=tuple(trials), session=session, incomplete="", looks=(), last_look=None
    )
