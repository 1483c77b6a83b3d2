"""Made trials of a machine that is known, measured interleaved or with the head long after the base."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.scorecard.data_sets import design
from benchmarks.scorecard.data_sets.calibration import learn_noise
from benchmarks.scorecard.data_sets.process import Machine
from benchmarks.scorecard.sample import METRICS, SCENARIOS, Batch
from pytest_ldos.judge.baseline.calibration import MetricNoise

GAP: Final = 30
"""Starts between base and head: half an hour at one start a minute."""

CALIBRATIONS: Final = 40
"""Different stretches that were calibrated on; runs take turns."""

CALIBRATION_RUNS: Final = 10
CALIBRATION_STARTS: Final = 4
CALIBRATION_TRIALS: Final = 8
"""``ldos calibrate --runs 10 --blocks 4 --trials 8`` with half an hour between runs."""

EXPECTED_RATE: Final = 0.8
"""Success rate that is declared for scenarios some of whose trials fail."""


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """See the module.

    Attributes:
        machines: by scenario; scenarios wander independently.
        interleaved: else base and head are one start each, with `GAP` others between them.
    """

    name: str
    title: str
    about: str
    machines: Mapping[str, Machine]
    interleaved: bool
    metrics: tuple[str, ...] = METRICS
    scenarios: tuple[str, ...] = SCENARIOS

    @property
    def power_scenarios(self) -> tuple[str, ...]:
        """The first that each machine makes the numbers of, if none of its trials fail."""
        machines = [self.machines[name] for name in self.scenarios]
        firsts = (name for number, name in enumerate(self.scenarios) if machines.index(self.machines[name]) == number)
        return tuple(name for name in firsts if not self.machines[name].failure_rate)

    @property
    def drifts(self) -> bool:
        wander = any(process.start_sd for machine in self.machines.values() for process in machine.processes.values())
        return wander and not self.interleaved

    def draw(self, scenario: str, runs: int, rng: np.random.Generator) -> Batch:
        if self.interleaved:
            base_starts, head_starts = design.turns()
            looks, per_start = design.IN_TURNS, design.PER_START
        else:
            base_starts, head_starts = np.array([0]), np.array([1 + GAP])
            looks, per_start = design.AFTER_BASE, design.TRIALS
        machine = self.machines[scenario]
        timeline = machine.timeline(runs, int(max(base_starts[-1], head_starts[-1])) + 1, rng)
        return Batch(
            scenario=scenario,
            base=machine.measure(timeline, base_starts, per_start, rng),
            head=machine.measure(timeline, head_starts, per_start, rng),
            looks=looks,
            interleaved=self.interleaved,
            noise=calibrate(machine, min(CALIBRATIONS, runs), rng),
            success_rate=EXPECTED_RATE if machine.failure_rate else 0.0,
        )


def calibrate(machine: Machine, count: int, rng: np.random.Generator) -> tuple[Mapping[str, MetricNoise], ...]:
    """From independent stretches of `CALIBRATION_RUNS` runs each, as far apart as base and head are."""
    distance = CALIBRATION_STARTS + GAP
    timeline = machine.timeline(count, distance * CALIBRATION_RUNS, rng)
    starts = (distance * np.arange(CALIBRATION_RUNS)[:, None] + np.arange(CALIBRATION_STARTS)).ravel()
    side = machine.measure(timeline, starts, CALIBRATION_TRIALS, rng)
    shape = (count, CALIBRATION_RUNS, CALIBRATION_STARTS, CALIBRATION_TRIALS)
    stretches = {name: values.reshape(shape) for name, values in side.values.items()}
    return tuple({name: learn_noise(each[number]) for name, each in stretches.items()} for number in range(count))
