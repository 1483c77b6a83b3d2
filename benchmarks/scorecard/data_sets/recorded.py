"""Real trials of the embedded stack, drawn start by start, and within starts trial by trial."""

from __future__ import annotations

import csv
import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.scorecard.data_sets import design
from benchmarks.scorecard.data_sets.calibration import learn_noise
from benchmarks.scorecard.sample import METRICS, SCENARIOS, Batch, Indices, Numbers, Side
from pytest_ldos.base.stats.adjust import remove_covariate
from pytest_ldos.campaign.noise import covariates_of
from pytest_ldos.judge.baseline.key import MetricNoise
from pytest_ldos.measure.metrics.catalogue import METRICS as CATALOGUE
from pytest_ldos.measure.metrics.model import CPU_WORK, PLANNED_DURATION

_FILE: Final = Path(__file__).parents[1] / "data" / "recorded_trials.csv.xz"

POOLS: Final[Mapping[str, tuple[str, ...]]] = {
    "baseline": ("calm-baseline",),
    "cpu_load": ("busy-baseline",),
    "msg_load": ("busy-msg_load",),
    "cpu_limit": ("calm-baseline",),
}
"""Recordings of each scenario."""

MEASURED: Final = (*METRICS, "T2x", "T3p99")
"""Metrics of the gate: the family of all rules, and two more of the gate."""

_COVARIATES: Final[Mapping[str, str]] = {"plan_ms": PLANNED_DURATION, "cpu_work_ms": CPU_WORK}
COMMON: Final = 6
"""Trials that every start has: on a busy machine not every stack gets through all of its own."""

NEIGHBOURS: Final = 3
"""Starts of each version, where one comes after the other: as many as ten trials have."""

CALIBRATIONS: Final = 40
"""Different ones; runs are interleaved."""

CALIBRATION_STARTS: Final = 8
"""Starts of one default run of ``ldos calibrate``, which makes two more trials in each."""


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """See the module."""

    name: str
    title: str
    about: str
    interleaved: bool
    metrics: tuple[str, ...] = METRICS
    scenarios: tuple[str, ...] = SCENARIOS
    power_scenarios: tuple[str, ...] = SCENARIOS[:2]

    @property
    def drifts(self) -> bool:
        return not self.interleaved

    def draw(self, scenario: str, runs: int, rng: np.random.Generator) -> Batch:
        pool = read_pool(POOLS[scenario])
        if self.interleaved:
            return _in_turns(scenario, pool, runs, rng)
        return _one_after_another(scenario, pool, runs, rng)


def _in_turns(scenario: str, pool: Mapping[str, Numbers], runs: int, rng: np.random.Generator) -> Batch:
    """Each pair of blocks is two neighbouring starts; which is whose takes turns."""
    base, head = design.turns()
    pairs = base.numbers.size
    first = rng.integers(len(pool["T1"]) - 1, size=(runs, pairs))
    turn = (np.arange(pairs) + rng.integers(2, size=(runs, 1))) % 2
    # The same trials of both: equal numbers have equal plans, as in a session.
    order = np.argsort(rng.random((runs, pairs, COMMON)), axis=2)
    return Batch(
        scenario=scenario,
        base=_side(pool, first + turn, order, base),
        head=_side(pool, first + 1 - turn, order, head),
        looks=design.IN_TURNS,
        interleaved=True,
        noise=_calibrations(pool, rng),
    )


def _one_after_another(scenario: str, pool: Mapping[str, Numbers], runs: int, rng: np.random.Generator) -> Batch:
    """Base and head are some starts each, from two places of the recording.

    No trial is drawn twice: copies would pass for evidence of their own.
    """
    starts = _two_places(len(pool["T1"]), runs, rng)[:, :, None] + np.arange(NEIGHBOURS)
    order = np.argsort(rng.random((2, runs, NEIGHBOURS, COMMON)), axis=3)
    base, head = design.one_after_another(0)
    return Batch(
        scenario=scenario,
        base=_side(pool, starts[:, 0], order[0], base),
        head=_side(pool, starts[:, 1], order[1], head),
        looks=design.ONCE,
        interleaved=False,
        noise=_calibrations(pool, rng),
    )


def _two_places(starts: int, runs: int, rng: np.random.Generator) -> Indices:
    """Base and head without overlap, in any order; shape (runs, 2)."""
    places = range(starts - NEIGHBOURS + 1)
    possible = [(base, head) for base in places for head in places if abs(base - head) >= NEIGHBOURS]
    return np.array(possible)[rng.integers(len(possible), size=runs)]


def _calibrations(pool: Mapping[str, Numbers], rng: np.random.Generator) -> tuple[Mapping[str, MetricNoise], ...]:
    """Calibrations, each of one run of consecutive starts; the first follows the last."""
    whole = len(pool["T1"])
    first = rng.integers(whole, size=(CALIBRATIONS, 1))
    drawn = (first + np.arange(CALIBRATION_STARTS)) % whole
    return tuple(
        {name: learn_noise(_without_covariates(name, pool, starts[None])) for name in MEASURED} for starts in drawn
    )


def _without_covariates(name: str, pool: Mapping[str, Numbers], starts: Indices) -> Numbers:
    """The values of a metric in some starts, less what its covariates explain: so ``ldos calibrate`` learns, too."""
    logs, nothing = np.log(pool[name][starts]).ravel(), np.empty(0)
    for column, meaning in _COVARIATES.items():
        if meaning in covariates_of(CATALOGUE[name]):
            (logs, _), _ = remove_covariate((logs, nothing), (np.log(pool[column][starts]).ravel(), nothing))
    return np.exp(logs).reshape(pool[name][starts].shape)


def _side(pool: Mapping[str, Numbers], starts: Indices, order: Indices, design_of: design.Starts) -> Side:
    """Args: starts of shape (runs, starts), and an order of the trials of each, shape (runs, starts, `COMMON`)."""
    kept = design_of.kept(COMMON)
    chosen = {name: np.take_along_axis(pool[name][starts], order, axis=2) for name in pool}
    flat = {name: values.reshape(len(starts), -1)[:, kept] for name, values in chosen.items()}
    return Side(
        values={name: flat[name] for name in MEASURED},
        failed=flat["failed"] > 0,
        blocks=design_of.blocks,
        covariates={meaning: flat[name] for name, meaning in _COVARIATES.items()},
    )


@cache
def read_pool(pools: tuple[str, ...]) -> Mapping[str, Numbers]:
    """Columns of recordings, shape (starts, trials), NaN where there is no trial or it has no value."""
    by_start: dict[tuple[int, int], list[Mapping[str, str]]] = {}
    with lzma.open(_FILE, "rt", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["pool"] in pools:
                by_start.setdefault((pools.index(row["pool"]), int(row["start"])), []).append(row)
    rows = [rows for _, rows in sorted(by_start.items())]
    columns = {
        name: _padded([[float(row[name] or "nan") for row in start] for start in rows])
        for name in (*MEASURED, *_COVARIATES)
    }
    failed = _padded([[float(row["outcome"] != "success") for row in start] for start in rows])
    return {**columns, "failed": failed}


def _padded(starts: list[list[float]]) -> Numbers:
    """With NaN behind the trials of starts that have fewer."""
    table = np.full((len(starts), max(map(len, starts))), np.nan)
    for row, values in zip(table, starts, strict=True):
        row[: len(values)] = values
    return table
