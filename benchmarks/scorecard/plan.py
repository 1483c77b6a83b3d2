"""Sizes of a complete scorecard, and of a short one for tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from benchmarks.scorecard.data_sets.chosen import DATA_SETS
from benchmarks.scorecard.data_sets.protocol import DataSet
from benchmarks.scorecard.family import FamilyRuns
from benchmarks.scorecard.power import SHIFTS, PlantedFailures, PlantedShift

SEED: Final = 20261121


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Numbers of runs.

    Attributes:
        data_sets: that are drawn from.
        ours: runs without a change, of each data set that does not drift; `ours_drifting` of each that does.
        others, otava: of these runs, the first that other rules are asked about.
        chunk: runs that are judged in one piece.
        shifts: runs of each cell; `main_shift` those of the cells that a target speaks of.
        otava_shifts: of these, that Otava is asked about.
        failures: runs with planted failures.
    """

    data_sets: tuple[DataSet, ...] = DATA_SETS
    seed: int = SEED
    ours: int = 250
    ours_drifting: int = 500
    others: int = 200
    otava: int = 200
    chunk: int = 50
    shifts: int = 10
    main_shifts: int = 30
    otava_shifts: int = 10
    failures: int = 200
    shift_names: tuple[str, ...] = field(default=tuple(SHIFTS))

    def families(self) -> Iterator[FamilyRuns]:
        for data in self.data_sets:
            whole = self.ours_drifting if data.drifts else self.ours
            for first in range(0, whole, self.chunk):
                runs = min(self.chunk, whole - first)
                others, otava = (min(runs, max(0, of - first)) for of in (self.others, self.otava))
                yield FamilyRuns(data, self.seed, first, runs, others, otava)

    def shifts_planted(self) -> Iterator[PlantedShift]:
        for data in self.data_sets:
            for scenario in data.power_scenarios:
                for metric in data.metrics:
                    for shift in self.shift_names:
                        runs = self.main_shifts if is_main(data, scenario, metric, shift) else self.shifts
                        yield PlantedShift(data, scenario, metric, shift, self.seed, runs, self.otava_shifts)

    def failures_planted(self) -> Iterator[PlantedFailures]:
        for data in self.data_sets:
            if data.name in FAILURE_DATA:
                yield PlantedFailures(data, "baseline", self.seed, self.failures)


MAIN_SHIFT: Final = "+15%"
SEED_DATA: Final = "seed"
FAILURE_DATA: Final = ("recorded_in_turns", SEED_DATA)


def is_main(data: DataSet, scenario: str, metric: str, shift: str) -> bool:
    """True if a target applies to this cell."""
    doubled = (data.name, scenario, metric, shift) == (SEED_DATA, "baseline", "T4", "+100%")
    return shift == MAIN_SHIFT or doubled


SMALL: Final = Plan(
    ours=8,
    others=4,
    otava=2,
    chunk=4,
    shifts=2,
    main_shifts=2,
    otava_shifts=2,
    failures=4,
    shift_names=("+15%", "+100%"),
)
"""Shows that everything works, and nothing else."""
