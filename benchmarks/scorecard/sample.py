"""Many runs of one scenario at once, as columns: what every rule is shown."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from pytest_ldos.judge.baseline.key import MetricNoise
from pytest_ldos.measure.trial.record import Look

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]

METRICS = ("T1", "T2", "T3", "T4", "T5")
"""The family of the scorecard; ours has T2x besides where the data has it."""

SCENARIOS = ("baseline", "cpu_load", "msg_load", "cpu_limit")


@dataclass(frozen=True, kw_only=True)
class Side:
    """The trials of one version in many runs.

    Attributes:
        values: by metric, shape (runs, trials), milliseconds; NaN where a failed trial has none.
        failed: shape (runs, trials).
        blocks: shape (trials,), the stack start of each trial, counted over both versions of an interleaved session.
        covariates: by name, shape (runs, trials), milliseconds.
    """

    values: Mapping[str, Numbers]
    failed: Flags
    blocks: Indices
    covariates: Mapping[str, Numbers] = field(default_factory=dict)

    @property
    def runs(self) -> int:
        return int(self.failed.shape[0])

    @property
    def trials(self) -> int:
        return int(self.failed.shape[1])

    def passed(self, metric: str) -> Numbers:
        """The values of trials that succeeded; NaN for the others."""
        return np.where(self.failed, np.nan, self.values[metric])

    def scaled(self, metric: str, factor: float) -> Side:
        """With one metric planted larger; a trial that failed stays as it is."""
        return replace(self, values={**self.values, metric: self.values[metric] * factor})


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Many runs of one scenario.

    Attributes:
        looks: at which ours may stop, in order.
        interleaved: whether both versions were measured interleaved, in one session.
        noise: noise from calibrations of the host, one per run or one for all; empty without one.
        success_rate: that is declared to be expected.
    """

    scenario: str
    base: Side
    head: Side
    looks: tuple[Look, ...]
    interleaved: bool
    noise: tuple[Mapping[str, MetricNoise], ...] = ()
    success_rate: float = 0.0

    @property
    def runs(self) -> int:
        return self.head.runs

    def noise_of(self, run: int) -> Mapping[str, MetricNoise]:
        return self.noise[run % len(self.noise)] if self.noise else {}

    def with_shift(self, metric: str, factor: float) -> Batch:
        return replace(self, head=self.head.scaled(metric, factor))


def generator(*words: object) -> np.random.Generator:
    """Random numbers that depend on nothing but these words."""
    return np.random.default_rng([zlib.crc32(str(word).encode()) for word in words])
