"""Draws pairs of equal versions from measured starts.

A start with enough trials contributes some of its own, as measured. If more trials are required than
it has, it is modelled: it keeps its level, and its trials are drawn, with replacement, from those of
all starts and moved to that level. A level is a start's mean, shrunk by the part that the noise of
its trials adds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from pytest_ldos.campaign.noise import adjust, estimate_metric, is_on_logs
from pytest_ldos.campaign.order import Role, first_blocks
from pytest_ldos.campaign.starts import Start, assemble
from pytest_ldos.measure.metrics.model import Measurement, Metric
from pytest_ldos.measure.trial.record import Trial, TrialSet
from pytest_ldos.measure.trial.series_of import to_series


class Design(StrEnum):
    """Design of a comparison of two versions."""

    INTERLEAVED = "interleaved"
    SEQUENTIAL = "sequential"


@dataclass(frozen=True)
class Pair:
    """Two equal versions.

    Attributes:
        used: numbers of the starts that their trials come from.
        is_modelled: True if a start required more trials than it had, or was used twice.
    """

    head: TrialSet
    base: TrialSet
    used: frozenset[int]
    is_modelled: bool


@dataclass(frozen=True)
class Pool:
    """Starts to draw from.

    Attributes:
        template: trial set with the scenario, stack, host and metrics of the trials.
    """

    template: TrialSet
    starts: tuple[Start, ...]

    @cached_property
    def block_size(self) -> int:
        """Median number of trials of a start."""
        return int(np.median([len(start.trials) for start in self.starts]))

    @cached_property
    def trials(self) -> list[tuple[int, Trial]]:
        """All trials, each with the number of its start."""
        return [(number, trial) for number, start in enumerate(self.starts) for trial in start.trials]

    @cached_property
    def moves(self) -> Mapping[str, tuple[bool, list[float]]]:
        """For each metric: True if it is moved by a factor, and the mean of each start on the scale of `adjust`.

        Trials are moved from their start's mean to the level of another; see `levels`.
        """
        return {metric.name: self._centres(metric) for metric in self.template.metrics}

    def _centres(self, metric: Metric) -> tuple[bool, list[float]]:
        values = [value[np.isfinite(value)] for value in adjust(metric, self.template, self.starts)]
        raw = np.array(to_series(_with(self.template, self.starts), metric).values)
        return is_on_logs(raw), [float(value.mean()) if value.size else 0.0 for value in values]

    @cached_property
    def levels(self) -> Mapping[str, list[float]]:
        """Level of each start by metric, on the scale of `adjust`: its mean, shrunk to the variation between starts."""
        return {metric.name: self._drawn_in(metric) for metric in self.template.metrics}

    def _drawn_in(self, metric: Metric) -> list[float]:
        means = np.array(self.moves[metric.name][1])
        components = estimate_metric(metric, self.template, self.starts)
        if components is None:
            return [0.0] * len(means)
        own = components.run_sd**2
        noise = components.trial_sd**2 / max(1, self.block_size)
        kept = math.sqrt(own / (own + noise)) if own > 0 else 0.0
        return [float(each) for each in means.mean() + kept * (means - means.mean())]

    def draw(self, rng: np.random.Generator, design: Design, trials: int) -> Pair:
        """Draws two versions with this many trials each that are truly equal."""
        return self._interleaved(rng, trials) if design is Design.INTERLEAVED else self._sequential(rng, trials)

    def _sequential(self, rng: np.random.Generator, trials: int) -> Pair:
        """Draws one start per version, the base's earlier than the head's; from different runs if there are several."""
        runs = sorted({start.run for start in self.starts})
        if len(runs) > 1:
            chosen = sorted(rng.choice(len(runs), 2, replace=False))
            numbers = [int(rng.choice(self._members(runs[each]))) for each in chosen]
        else:
            numbers = [int(each) for each in sorted(rng.choice(len(self.starts), 2, replace=False))]
        base, head = (self._take(rng, number, trials) for number in numbers)
        is_modelled = any(trials > len(self.starts[number].trials) for number in numbers)
        return Pair(
            assemble(self.template, [(0, head)]), assemble(self.template, [(0, base)]), frozenset(numbers), is_modelled
        )

    def _members(self, run: int) -> list[int]:
        return [number for number, start in enumerate(self.starts) if start.run == run]

    def _interleaved(self, rng: np.random.Generator, trials: int) -> Pair:
        """Draws starts of one run, in the blocks that an interleaved run has by default."""
        blocks = first_blocks(trials)
        members = self._members(int(rng.choice([start.run for start in self.starts])))
        is_repeated = len(blocks) > len(members)
        numbers = sorted(int(each) for each in rng.choice(members, len(blocks), replace=is_repeated))
        sizes = [len(self.starts[number].trials) for number in numbers]
        is_modelled = is_repeated or any(len(block.trials) > own for block, own in zip(blocks, sizes, strict=True))
        sides: dict[Role, list[tuple[int, Sequence[Trial]]]] = {Role.BASE: [], Role.HEAD: []}
        for block, number in zip(blocks, numbers, strict=True):
            taken = self._take(rng, number, len(block.trials), is_modelled=is_modelled)
            sides[block.role].append((block.number, taken))
        head, base = (assemble(self.template, sides[role], session="resampled") for role in (Role.HEAD, Role.BASE))
        return Pair(head, base, frozenset(numbers), is_modelled)

    def _take(
        self, rng: np.random.Generator, number: int, trials: int, *, is_modelled: bool = False
    ) -> Sequence[Trial]:
        own = self.starts[number].trials
        if trials <= len(own) and not is_modelled:
            return [own[each] for each in sorted(rng.choice(len(own), trials, replace=False))]
        chosen = rng.integers(len(self.trials), size=trials)
        return [self._move(*self.trials[each], to=number) for each in chosen]

    def _move(self, origin: int, trial: Trial, *, to: int) -> Trial:
        measurements = {
            name: self._moved(name, measurement, origin, to) for name, measurement in trial.measurements.items()
        }
        return dataclasses.replace(trial, measurements=measurements)

    def _moved(self, name: str, measurement: Measurement, origin: int, to: int) -> Measurement:
        number = measurement.number
        if number is None or name not in self.moves:
            return measurement
        by_factor, means = self.moves[name]
        shift = self.levels[name][to] - means[origin]
        moved = number * math.exp(shift) if by_factor else number + shift * self._scales[name]
        return dataclasses.replace(measurement, value=moved)

    @cached_property
    def _scales(self) -> Mapping[str, float]:
        whole = _with(self.template, self.starts)
        medians = {metric.name: to_series(whole, metric).finite for metric in self.template.metrics}
        return {name: abs(float(np.median(values))) if values else 1.0 for name, values in medians.items()}


def plant(trials: TrialSet, metric: str, effect: float) -> TrialSet:
    """The trials, with a metric increased by a relative effect."""
    changed = []
    for trial in trials.trials:
        found = trial.measurements.get(metric)
        if found is not None and found.number is not None:
            value = found.number + effect * abs(found.number)
            found = dataclasses.replace(found, value=value)
            trial = dataclasses.replace(trial, measurements={**trial.measurements, metric: found})  # noqa: PLW2901
        changed.append(trial)
    return dataclasses.replace(trials, trials=tuple(changed))


def _with(template: TrialSet, starts: Sequence[Start]) -> TrialSet:
    return dataclasses.replace(template, trials=tuple(trial for start in starts for trial in start.trials))
