"""The raw trials of the LDOS harness (CloudLab, January 2026), drawn with replacement."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.scorecard.data_sets import design
from benchmarks.scorecard.sample import SCENARIOS, Batch, Numbers, Side
from pytest_ldos.measure.trial.record import Look

_FILE: Final = Path(__file__).parents[1] / "data" / "seed_trials.csv"
_STANDS_FOR: Final[Mapping[str, str]] = {"cpu_limit": "baseline"}


@dataclass(frozen=True, kw_only=True)
class Seed:
    name: str = "seed"
    title: str = "seed's raw trials"
    about: str = (
        "Ten trials a scenario, each with a stack start of its own, without the rows that ran under a profiler; T3 and "
        "T5 were never measured, so the family has three metrics. All trials of msg_load failed, on both "
        "sides: no rule has anything to compare there. There are no raw trials of cpu_limit: those of "
        "baseline stand for it."
    )
    drifts: bool = False
    metrics: tuple[str, ...] = ("T1", "T2", "T4")
    scenarios: tuple[str, ...] = SCENARIOS
    power_scenarios: tuple[str, ...] = SCENARIOS[:2]

    def draw(self, scenario: str, runs: int, rng: np.random.Generator) -> Batch:
        return Batch(
            scenario=scenario,
            base=self._side(scenario, runs, rng),
            head=self._side(scenario, runs, rng),
            looks=tuple(Look(head, design.TRIALS) for head in design.HEAD_LOOKS),
            interleaved=False,
        )

    def _side(self, scenario: str, runs: int, rng: np.random.Generator) -> Side:
        rows = _rows(_STANDS_FOR.get(scenario, scenario))
        chosen = rng.integers(len(rows), size=(runs, design.TRIALS))
        return Side(
            values={name: rows[chosen, column] for column, name in enumerate(self.metrics, start=1)},
            failed=rows[chosen, 0] == 0,
            blocks=np.arange(design.TRIALS),
        )


@cache
def _rows(scenario: str) -> Numbers:
    """Columns: succeeded, T1, T2, T4."""
    with _FILE.open(newline="") as lines:
        found = [row for row in csv.DictReader(lines) if row["scenario"] == scenario]
    return np.array([[float(row[name]) for name in ("succeeded", "T1", "T2", "T4")] for row in found])
