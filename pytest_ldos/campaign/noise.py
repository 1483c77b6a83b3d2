"""Estimates a host's noise from starts of one version, and draws pairs of equal versions from them.

A start with enough trials contributes measured ones. If more trials are required, the start is modelled: it keeps its
level, and its trials are drawn with replacement from those of all starts and shifted to that level. A level is a
start's mean, shrunk by the noise of its trials.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from pytest_ldos.base.files import copied
from pytest_ldos.base.series import Series
from pytest_ldos.base.stats.adjust import remove_covariate
from pytest_ldos.base.stats.rank_tests import Sample
from pytest_ldos.base.stats.starts import Components, estimate_components
from pytest_ldos.campaign.order import Role, first_blocks
from pytest_ldos.judge.baseline.key import Calibration, MetricNoise
from pytest_ldos.measure.metrics.model import USUAL_FLOOR, Metric
from pytest_ldos.measure.trial.record import Trial, TrialSet, to_series


@dataclass(frozen=True)
class Start:
    """The trials of one stack start; starts of different runs were measured at different times."""

    run: int
    trials: tuple[Trial, ...]


def template_of(runs: Sequence[TrialSet]) -> TrialSet:
    """The first run, with the metrics of all runs."""
    metrics = {metric.name: metric for run in runs for metric in run.metrics}
    return dataclasses.replace(runs[0], metrics=tuple(metrics.values()))


def starts_of(runs: Iterable[TrialSet]) -> tuple[Start, ...]:
    """The starts of the runs, in chronological order, without empty starts."""
    found = []
    for number, trials in enumerate(runs):
        blocks = dict.fromkeys(trial.block for trial in trials.trials)
        found += [Start(number, tuple(each for each in trials.trials if each.block == block)) for block in blocks]
    return tuple(found)


def assemble(template: TrialSet, starts: Sequence[tuple[int, Sequence[Trial]]], *, session: str = "") -> TrialSet:
    """A trial set as if it had been measured in these blocks, given as block number and trials."""
    placed = [(block, trial) for block, members in starts for trial in members]
    trials = tuple(dataclasses.replace(trial, index=index, block=block) for index, (block, trial) in enumerate(placed))
    spec = dataclasses.replace(template.spec, trials=max(1, len(trials)))
    return dataclasses.replace(
        template, spec=spec, trials=trials, session=session, incomplete="", looks=(), last_look=None
    )


LEAST_FLOOR: Final = 0.01
"""Lower bound of all floors: a change of less than one percent is never a regression."""

_LARGEST_SHIFT: Final = 10.0


def to_calibration(template: TrialSet, starts: Sequence[Start]) -> Calibration:
    return copied(
        Calibration,
        template,
        made_at=template.started_at,
        starts=len(starts),
        trials=sum(len(start.trials) for start in starts),
        runs=len({start.run for start in starts}),
        metrics=learn_noise(template, starts),
    )


def learn_noise(template: TrialSet, starts: Sequence[Start]) -> dict[str, MetricNoise]:
    """The noise of each metric that was measured in two or more starts."""
    found = {metric.name: (metric, estimate_metric(metric, template, starts)) for metric in template.metrics}
    return {
        name: to_noise(each, usual_floor=metric.usual_floor)
        for name, (metric, each) in found.items()
        if each is not None
    }


def estimate_metric(metric: Metric, template: TrialSet, starts: Sequence[Start]) -> Components | None:
    adjusted = adjust(metric, template, starts)
    runs = dict.fromkeys(start.run for start in starts)
    return estimate_components(
        [[_finite(values) for start, values in zip(starts, adjusted, strict=True) if start.run == run] for run in runs]
    )


def adjust(metric: Metric, template: TrialSet, starts: Sequence[Start]) -> list[Sample]:
    """The values of each start, with goal levels and covariates removed as in the gate.

    Goal levels are removed first, from covariates as well as from values, because only a covariate's
    relation to differences within a goal is its influence. Values are logarithms or, if any is zero or
    less, shares of the median. Failed trials are infinite or absent, as in the gate.
    """
    series = [to_series(dataclasses.replace(template, trials=start.trials), metric) for start in starts]
    values = _joined(each.values for each in series)
    goals = np.array([goal for each in series for goal in each.strata], dtype=np.str_)
    on_logs, finite = is_on_logs(values), _finite(values)
    scale = max(abs(float(np.median(finite))), 1e-9) if finite.size else 1.0
    adjusted = _without_levels(np.log(values) if on_logs else values / scale, goals)
    nothing = np.empty(0)
    for name in covariates_of(metric):
        causes = _joined(each.covariates[name] for each in series)
        leveled = _without_levels(np.log(causes) if on_logs else causes, goals)
        (adjusted, _), _ = remove_covariate((adjusted, nothing), (leveled, nothing))
    return np.split(adjusted, np.cumsum([len(each) for each in series])[:-1])


def _joined(parts: Iterable[Sequence[float]]) -> Sample:
    return np.array([value for part in parts for value in part], dtype=np.float64)


def _without_levels(values: Sample, goals: npt.NDArray[np.str_]) -> Sample:
    """Values minus the mean of their goal; values that are not finite stay as they are."""
    leveled = values.copy()
    for goal in np.unique(goals):
        members = goals == goal
        finite = _finite(values[members])
        leveled[members] -= float(finite.mean()) if finite.size else 0.0
    return leveled


def covariates_of(metric: Metric) -> tuple[str, ...]:
    """Covariates of a metric, including those that the gate removes only if the versions do not differ in them."""
    return (*metric.adjust_for, *metric.adjust_where_alike)


def is_on_logs(values: Sample) -> bool:
    return bool(np.all(_finite(values) > 0))


def to_noise(components: Components, *, usual_floor: float = USUAL_FLOOR) -> MetricNoise:
    run_sd, largest = components.run_sd, components.largest_run_sd
    floor = choose_floor(run_sd=run_sd, largest_run_sd=largest, usual_floor=usual_floor)
    return copied(MetricNoise, components, floor=floor)


def choose_floor(*, run_sd: float, largest_run_sd: float, usual_floor: float = USUAL_FLOOR) -> float:
    """The smallest relative effect that is reported.

    It is the metric's usual floor, with two exceptions. It is lower if three standard deviations
    between unchanged runs, at their upper bound, are smaller, because such a change is not noise. It is
    higher if a single standard deviation is larger, because equal runs differ by as much.
    """
    safe, usual = (
        math.expm1(min(deviations * math.sqrt(2) * sd, _LARGEST_SHIFT))
        for deviations, sd in ((3.0, largest_run_sd), (1.0, run_sd))
    )
    return max(LEAST_FLOOR, min(usual_floor, safe), usual)


def _finite(values: Sample) -> Sample:
    return values[np.isfinite(values)]


class Design(StrEnum):
    INTERLEAVED = "interleaved"
    SEQUENTIAL = "sequential"


@dataclass(frozen=True)
class Pair:
    """Two equal versions from the `used` starts; modelled if a start was used twice, or for more trials than it has."""

    head: TrialSet
    base: TrialSet
    used: frozenset[int]
    is_modelled: bool


@dataclass(frozen=True)
class Pool:
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
    def _series(self) -> Mapping[str, Series]:
        whole = dataclasses.replace(self.template, trials=tuple(trial for _, trial in self.trials))
        return {metric.name: to_series(whole, metric) for metric in self.template.metrics}

    @cached_property
    def moves(self) -> Mapping[str, tuple[bool, list[float]]]:
        """For each metric: True if trials are shifted by a factor, and each start's mean on the scale of `adjust`.

        Trials are shifted from their start's mean to the level of another; see `levels`.
        """
        found = {}
        for metric in self.template.metrics:
            values = [_finite(value) for value in adjust(metric, self.template, self.starts)]
            means = [float(value.mean()) if value.size else 0.0 for value in values]
            found[metric.name] = is_on_logs(np.array(self._series[metric.name].values)), means
        return found

    @cached_property
    def levels(self) -> Mapping[str, list[float]]:
        """Level of each start by metric, on the scale of `adjust`: its mean, shrunk to the variation between starts."""
        found = {}
        for metric in self.template.metrics:
            means = np.array(self.moves[metric.name][1])
            if (components := estimate_metric(metric, self.template, self.starts)) is None:
                found[metric.name] = [0.0] * len(means)
                continue
            own = components.run_sd**2
            noise = components.trial_sd**2 / max(1, self.block_size)
            kept = math.sqrt(own / (own + noise)) if own > 0 else 0.0
            found[metric.name] = [float(each) for each in means.mean() + kept * (means - means.mean())]
        return found

    def draw(self, rng: np.random.Generator, design: Design, trials: int) -> Pair:
        return self._interleaved(rng, trials) if design is Design.INTERLEAVED else self._sequential(rng, trials)

    def _sequential(self, rng: np.random.Generator, trials: int) -> Pair:
        """Draws one start per version, the base's earlier than the head's; from different runs if there are several."""
        runs = sorted({start.run for start in self.starts})
        if len(runs) > 1:
            chosen = sorted(rng.choice(len(runs), 2, replace=False))
            numbers = [int(rng.choice(self._members(runs[each]))) for each in chosen]
        else:
            numbers = [int(each) for each in sorted(rng.choice(len(self.starts), 2, replace=False))]
        base, head = (assemble(self.template, [(0, self._take(rng, number, trials))]) for number in numbers)
        is_modelled = any(trials > len(self.starts[number].trials) for number in numbers)
        return Pair(head, base, frozenset(numbers), is_modelled)

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
        return [self._move(*self.trials[each], to=number) for each in rng.integers(len(self.trials), size=trials)]

    @cached_property
    def _scales(self) -> Mapping[str, float]:
        medians = {name: series.finite for name, series in self._series.items()}
        return {name: abs(float(np.median(values))) if values else 1.0 for name, values in medians.items()}

    def _move(self, origin: int, trial: Trial, *, to: int) -> Trial:
        """A trial as if it belonged to another start, to whose level its measurements are shifted."""
        moved = dict(trial.measurements)
        for name, measurement in trial.measurements.items():
            number = measurement.number
            if number is None or name not in self.moves:
                continue
            by_factor, means = self.moves[name]
            shift = self.levels[name][to] - means[origin]
            value = number * math.exp(shift) if by_factor else number + shift * self._scales[name]
            moved[name] = dataclasses.replace(measurement, value=value)
        return dataclasses.replace(trial, measurements=moved)


def plant(trials: TrialSet, metric: str, effect: float) -> TrialSet:
    """Increases a metric of the trials by a relative effect."""
    changed = []
    for trial in trials.trials:
        found = trial.measurements.get(metric)
        if found is None or found.number is None:
            changed.append(trial)
            continue
        grown = dataclasses.replace(found, value=found.number + effect * abs(found.number))
        changed.append(dataclasses.replace(trial, measurements={**trial.measurements, metric: grown}))
    return dataclasses.replace(trials, trials=tuple(changed))
