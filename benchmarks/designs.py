"""The gate by designs of a comparison: one start a side, several starts, interleaved; on machines that are known.

    python -m benchmarks.designs                    # everything: hours on two cores; see --only
    python -m benchmarks.designs --runs 20          # only shows that it works

For each machine, design and calibration it prints unchanged runs that are red, with the upper 95 % bound, changes of
one metric that are found, and the mean number of trials of head with +15 %. A run is four
scenarios of five metrics. The same seed gives the same numbers.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

import numpy as np

from benchmarks.scorecard.data_sets.calibration import learn_noise
from benchmarks.scorecard.interval import clopper_pearson
from benchmarks.scorecard.rules.chosen import OURS
from benchmarks.scorecard.sample import METRICS, SCENARIOS, Batch, Indices, Numbers, Side, generator
from pytest_ldos.campaign.order import Role, first_blocks, next_pair
from pytest_ldos.judge.baseline.key import MetricNoise
from pytest_ldos.measure.trial.record import Look

SEED: Final = 20261123

Plant = Callable[[Numbers, np.random.Generator], Numbers]
"""Changes the values of head's trials, shape (runs, trials)."""


def spread_by(factor: float) -> Plant:
    """Multiplies logarithmic distances from the median of each run."""

    def plant(values: Numbers, _: np.random.Generator) -> Numbers:
        medians = np.median(values, axis=1, keepdims=True)
        spread: Numbers = medians * (values / medians) ** factor
        return spread

    return plant


def slow_trials(share: float) -> Plant:
    """Makes a share of the trials three times as slow."""
    return lambda values, rng: values * np.where(rng.random(values.shape) < share, 3.0, 1.0)


def late(factor: float) -> Plant:
    """Makes the last third of the trials slower."""
    return lambda values, _: values * np.where(np.arange(values.shape[1]) * 3 < values.shape[1] * 2, 1.0, factor)


PLANTED: Final[Mapping[str, Plant]] = {
    "+15 %": lambda values, _: values * 1.15,
    "spread x 2": spread_by(2.0),
    "spread x 3": spread_by(3.0),
    "5 % x 3": slow_trials(0.05),
    "30 % x 3": slow_trials(0.3),
    "late x 1.4": late(1.4),
    "late x 2": late(2.0),
}
"""Changes of one metric; all but the first are looked for in interleaved versions alone."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Standard deviations of logarithms on a machine, and what else happens on it.

    Attributes:
        slow_starts: share of the starts that are slower by a fifth.
        outliers: share of the trials that take three times as long.
        first_slow: number of trials at the beginning of a version that take three times as long.
        degrees: of freedom of Student's t that trials follow, scaled to `trial_sd`; infinite for the normal.
    """

    name: str
    trial_sd: float
    start_sd: float = 0.0
    run_sd: float = 0.0
    slow_starts: float = 0.0
    outliers: float = 0.0
    first_slow: int = 0
    degrees: float = math.inf

    def runs(self, runs: int, rng: np.random.Generator) -> Numbers:
        """Levels of runs at different times, shape (runs,)."""
        return rng.normal(0, self.run_sd, runs)

    def trials(self, levels: Numbers, starts: int, trials: int, rng: np.random.Generator) -> Numbers:
        """Values of shape (runs, starts, trials)."""
        shape = (len(levels), starts, trials)
        of_starts = levels[:, None] + rng.normal(0, self.start_sd, shape[:2])
        of_starts += math.log(1.2) * (rng.random(shape[:2]) < self.slow_starts)
        if math.isinf(self.degrees):
            noise = rng.normal(0, self.trial_sd, shape)
        else:
            noise = rng.standard_t(self.degrees, shape) * self.trial_sd / math.sqrt(self.degrees / (self.degrees - 2))
        slow = rng.random(shape) < self.outliers
        slow.reshape(len(levels), -1)[:, : self.first_slow] = True
        values: Numbers = 10 * np.exp(of_starts[:, :, None] + noise) * np.where(slow, 3.0, 1.0)
        return values


MACHINES: Final = (
    Machine(name="steady", trial_sd=0.08),
    Machine(name="starts differ", trial_sd=0.05, start_sd=0.04),
    Machine(name="starts and runs differ", trial_sd=0.02, start_sd=0.04, run_sd=0.04),
    Machine(name="runs differ", trial_sd=0.08, start_sd=0.02, run_sd=0.06),
    Machine(name="a third of the starts slow", trial_sd=0.04, slow_starts=0.33),
    Machine(name="one trial in ten x 3", trial_sd=0.06, start_sd=0.01, outliers=0.1),
    Machine(name="first two trials x 3", trial_sd=0.05, start_sd=0.01, first_slow=2),
    Machine(name="heavy tails", trial_sd=0.08, start_sd=0.01, degrees=3.0),
)


@dataclass(frozen=True, kw_only=True)
class Design:
    """A comparison: starts of each version with trials each, one version after the other or interleaved.

    Attributes:
        trials: of each version at the first look, where they are interleaved; `most` at the last.
    """

    name: str
    starts: int = 0
    per_start: int = 0
    trials: int = 0
    most: int = 0

    @property
    def is_interleaved(self) -> bool:
        return self.starts == 0

    def blocks(self) -> tuple[Indices, Indices, tuple[Look, ...]]:
        """Block of each trial of base and of head, and the looks."""
        if not self.is_interleaved:
            own = np.repeat(np.arange(self.starts), self.per_start)
            return own, own, (Look(own.size, own.size),)
        blocks, looks = first_blocks(self.trials, size=self.per_start or None), [Look(self.trials, self.trials)]
        size = len(blocks[-1].trials)
        while pair := next_pair(blocks[-1], limit=self.most, size=size):
            blocks += pair
            if (pair[0].trials.stop - self.trials) % 5 < size or pair[0].trials.stop == self.most:
                looks.append(Look(pair[0].trials.stop, pair[0].trials.stop))
        of = [
            np.repeat([b.number for b in blocks if b.role is role], [len(b.trials) for b in blocks if b.role is role])
            for role in (Role.BASE, Role.HEAD)
        ]
        return of[0], of[1], tuple(looks)


DESIGNS: Final = (
    Design(name="1 start x 15", starts=1, per_start=15),
    Design(name="3 starts x 4", starts=3, per_start=4),
    Design(name="3 starts x 5", starts=3, per_start=5),
    Design(name="5 starts x 2", starts=5, per_start=2),
    Design(name="15 starts x 2", starts=15, per_start=2),
    Design(name="interleaved 10", trials=10, most=10),
    Design(name="interleaved 10 to 30", trials=10, most=30),
    Design(name="interleaved 30", trials=30, most=30),
    Design(name="interleaved 15 x 2", trials=30, most=30, per_start=2),
)

CALIBRATIONS: Final[Mapping[str, tuple[int, int, int] | None]] = {
    "none": None,
    "1 run x 8 x 8": (1, 8, 8),
    "5 runs x 4 x 4": (5, 4, 4),
    "10 runs x 4 x 4": (10, 4, 4),
}
"""Runs, starts and trials of the calibrations; the second is the default of ``ldos calibrate``."""

_DIFFERENT: Final = 40
"""Calibrations with which runs are interleaved."""


@dataclass(frozen=True)
class Cell:
    """A piece of work."""

    machine: Machine
    design: Design
    calibration: str
    runs: int
    seed: int

    def judge(self) -> str:
        """The line of this cell."""
        red = np.zeros(self.runs, dtype=np.bool_)
        for scenario in SCENARIOS:
            batch = self._draw(scenario)
            red |= np.array([OURS.judge(batch, run, scenarios=len(SCENARIOS)).red for run in range(self.runs)])
        planted = {name: self._find(name) for name in PLANTED if self.design.is_interleaved or name == "+15 %"}
        found = " ".join(f"{f'{100 * planted[name][0]:.0f}' if name in planted else '-':>10}" for name in PLANTED)
        alarms = clopper_pearson(int(red.sum()), self.runs)
        return (
            f"{self.machine.name:27} {self.design.name:21} {self.calibration:15} "
            f"{100 * alarms.rate:6.1f} (<= {100 * alarms.high:5.1f}) {found} {planted['+15 %'][1]:6.1f}"
        )

    def _find(self, name: str) -> tuple[float, float]:
        """Share of the runs in which a change of one metric is found, and the mean number of trials of head."""
        batch = self._draw("planted")
        changed = PLANTED[name](batch.head.values[METRICS[0]], generator(self.seed, name))
        batch = replace(batch, head=replace(batch.head, values={**batch.head.values, METRICS[0]: changed}))
        judged = [OURS.judge(batch, run, scenarios=len(SCENARIOS)) for run in range(self.runs)]
        found = np.mean([METRICS[0] in each.regressed for each in judged])
        return float(found), float(np.mean([each.head_trials for each in judged]))

    def _draw(self, scenario: str) -> Batch:
        rng = generator(self.seed, self.machine.name, self.design.name, self.calibration, scenario)
        blocks = self.design.blocks()
        levels = {name: [self.machine.runs(self.runs, rng) for _ in range(2)] for name in METRICS}
        sides = []
        for side, own in enumerate(blocks[:2]):
            sizes = np.unique(own, return_counts=True)[1]
            values = {
                name: self.machine.trials(
                    levels[name][0 if self.design.is_interleaved else side], len(sizes), int(sizes.max()), rng
                )
                for name in METRICS
            }
            kept = (np.arange(sizes.max()) < sizes[:, None]).ravel()
            flat = {name: each.reshape(self.runs, -1)[:, kept] for name, each in values.items()}
            sides.append(Side(values=flat, failed=np.zeros((self.runs, own.size), dtype=np.bool_), blocks=own))
        return Batch(
            scenario=scenario,
            base=sides[0],
            head=sides[1],
            looks=blocks[2],
            interleaved=self.design.is_interleaved,
            noise=self._calibrate(rng),
        )

    def _calibrate(self, rng: np.random.Generator) -> tuple[Mapping[str, MetricNoise], ...]:
        shape = CALIBRATIONS[self.calibration]
        if shape is None:
            return ()
        runs, starts, trials = shape
        machine = self.machine
        return tuple(
            {name: learn_noise(machine.trials(machine.runs(runs, rng), starts, trials, rng)) for name in METRICS}
            for _ in range(min(_DIFFERENT, self.runs))
        )


def cells(runs: int, seed: int, only: str) -> Iterator[Cell]:
    for machine, design, calibration in product(MACHINES, DESIGNS, CALIBRATIONS):
        if only in f"{machine.name} / {design.name} / {calibration}":
            yield Cell(machine, design, calibration, runs, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", default="", help="part of 'machine / design / calibration'")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    began = time.monotonic()
    print(
        f"{'machine':27} {'design':21} {'calibration':15} {'red %':>6} {'':10} "
        f"{' '.join(f'{name:>10}' for name in PLANTED)} {'trials':>6}"
    )
    with ProcessPoolExecutor(options.processes) as pool:
        for line in pool.map(Cell.judge, cells(options.runs, options.seed, options.only)):
            print(line, flush=True)
    print(f"{time.monotonic() - began:.0f} s; {options.runs} runs of a cell, seed {options.seed}")


if __name__ == "__main__":
    main()
