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
from pytest_ldos.judge.baseline.key import MetricNoise

GAP: Final = 30
"""Starts between base and head: half an hour at one start a minute."""

CALIBRATIONS: Final = 40
"""Different calibrated stretches; runs are interleaved."""

CALIBRATION_STARTS: Final = 8
CALIBRATION_TRIALS: Final = 8
"""One run of ``ldos calibrate``, as it is by default."""

EXPECTED_RATE: Final = 0.8
"""Success rate that is declared for scenarios some of whose trials fail."""


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """See the module.

    Attributes:
        machines: by scenario; scenarios wander independently.
        interleaved: else `GAP` other starts lie between base and head.
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
        base, head = design.turns() if self.interleaved else design.one_after_another(GAP)
        machine = self.machines[scenario]
        timeline = machine.timeline(runs, int(max(base.numbers[-1], head.numbers[-1])) + 1, rng)
        return Batch(
            scenario=scenario,
            base=machine.measure(timeline, base, rng),
            head=machine.measure(timeline, head, rng),
            looks=design.IN_TURNS if self.interleaved else design.ONCE,
            interleaved=self.interleaved,
            noise=calibrate(machine, min(CALIBRATIONS, runs), rng),
            success_rate=EXPECTED_RATE if machine.failure_rate else 0.0,
        )


def calibrate(machine: Machine, count: int, rng: np.random.Generator) -> tuple[Mapping[str, MetricNoise], ...]:
    """From independent stretches of `CALIBRATION_STARTS` starts, one after another."""
    timeline = machine.timeline(count, CALIBRATION_STARTS, rng)
    numbers = np.arange(CALIBRATION_STARTS)
    side = machine.measure(timeline, design.Starts(numbers, np.full_like(numbers, CALIBRATION_TRIALS)), rng)
    shape = (count, 1, CALIBRATION_STARTS, CALIBRATION_TRIALS)
    stretches = {name: values.reshape(shape) for name, values in side.values.items()}
    return tuple({name: learn_noise(each[number]) for name, each in stretches.items()} for number in range(count))
