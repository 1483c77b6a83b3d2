"""Processes that make the numbers of a machine: starts that wander, trials that differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from benchmarks.scorecard.data_sets.design import Starts
from benchmarks.scorecard.sample import METRICS, Flags, Indices, Numbers, Side

TYPICAL_MS = {"T1": 9.0, "T2": 1955.0, "T3": 0.1, "T4": 1966.0, "T5": 0.09}
"""Medians of the embedded stack."""


@dataclass(frozen=True, kw_only=True)
class Process:
    """One metric of a machine over time; deviations are of logarithms.

    Attributes:
        trial_sd: between trials of a start.
        start_sd: of the level that wanders from start to start, in the long run.
        correlation: of that level between starts that follow each other.
        step_rate, step_sd: how often a start brings a lasting step of the level, and its size.
        degrees: of freedom of Student's t that trials are drawn from, scaled to `trial_sd`; infinite for the normal.
        outlier_rate, outlier_size: share of trials that take a Pareto-distributed (shape 3) part longer, and its scale.
    """

    trial_sd: float
    start_sd: float
    correlation: float = 0.0
    step_rate: float = 0.0
    step_sd: float = 0.0
    degrees: float = np.inf
    outlier_rate: float = 0.0
    outlier_size: float = 0.0

    def levels(self, runs: int, starts: int, rng: np.random.Generator) -> Numbers:
        """Effects of consecutive starts, shape (runs, starts)."""
        level = rng.normal(0, self.start_sd, runs)
        fresh = self.start_sd * np.sqrt(1 - self.correlation**2)
        lasting = np.zeros(runs)
        found = np.empty((runs, starts))
        for start in range(starts):
            found[:, start] = level + lasting
            level = self.correlation * level + rng.normal(0, fresh, runs)
            if self.step_rate:
                lasting = lasting + rng.normal(0, self.step_sd, runs) * (rng.random(runs) < self.step_rate)
        return found

    def trials(self, levels: Numbers, sizes: Indices, rng: np.random.Generator) -> Numbers:
        """Factors on the typical value, shape (runs, trials); `sizes` are the trials of each start."""
        shape = (levels.shape[0], int(sizes.sum()))
        if np.isinf(self.degrees):
            noise = rng.normal(0, self.trial_sd, shape)
        else:
            noise = rng.standard_t(self.degrees, shape) * self.trial_sd / np.sqrt(self.degrees / (self.degrees - 2))
        longer = (rng.random(shape) < self.outlier_rate) * self.outlier_size * (1 + rng.pareto(3, shape))
        factors: Numbers = np.exp(np.repeat(levels, sizes, axis=1) + noise) * (1 + longer)
        return factors


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Generators of the numbers of one scenario.

    Attributes:
        processes: by metric.
        failure_rate: of trials.
    """

    processes: Mapping[str, Process]
    typical_ms: Mapping[str, float] = field(default_factory=lambda: TYPICAL_MS)
    failure_rate: float = 0.0

    def timeline(self, runs: int, starts: int, rng: np.random.Generator) -> Mapping[str, Numbers]:
        """Levels of consecutive starts, by metric."""
        return {name: process.levels(runs, starts, rng) for name, process in self.processes.items()}

    def measure(self, timeline: Mapping[str, Numbers], starts: Starts, rng: np.random.Generator) -> Side:
        """The trials of a version that had these starts of the time line."""
        values = {
            name: self.typical_ms[name] * process.trials(timeline[name][:, starts.numbers], starts.sizes, rng)
            for name, process in self.processes.items()
        }
        shape = next(iter(values.values())).shape
        failed: Flags = rng.random(shape) < self.failure_rate
        return Side(values=values, failed=failed, blocks=starts.blocks)


def alike(process: Process) -> Mapping[str, Process]:
    """The same process for every metric."""
    return dict.fromkeys(METRICS, process)
