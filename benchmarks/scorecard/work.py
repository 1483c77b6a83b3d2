"""Does the pieces of work in several processes; the order in which they end changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from benchmarks.scorecard.environment import Peers
from benchmarks.scorecard.family import Alarms, FamilyResult
from benchmarks.scorecard.plan import Plan
from benchmarks.scorecard.power import Found, PlantedFailures, PlantedShift
from benchmarks.scorecard.rules.otava import Otava
from benchmarks.scorecard.sample import Flags, Numbers

Result_co = TypeVar("Result_co", covariant=True)


class Piece(Protocol[Result_co]):
    def judge(self) -> Result_co: ...


@dataclass
class Results:
    """Everything that was found.

    Attributes:
        families: by data set.
        shifts, failures: with what was planted.
    """

    families: dict[str, FamilyResult] = field(default_factory=dict)
    shifts: list[tuple[PlantedShift, Found]] = field(default_factory=list)
    failures: list[tuple[PlantedFailures, Found]] = field(default_factory=list)


def judge_all(plan: Plan, processes: int) -> Results:
    families, shifts, failures = list(plan.families()), list(plan.shifts_planted()), list(plan.failures_planted())
    with ProcessPoolExecutor(processes) as pool:
        of_families = pool.map(_judge, families)
        of_shifts = pool.map(_judge, shifts, chunksize=4)
        of_failures = pool.map(_judge, failures)
        results = Results()
        for piece, found in zip(families, of_families, strict=True):
            results.families.setdefault(piece.data.name, FamilyResult()).add(found)
        results.shifts = list(zip(shifts, of_shifts, strict=True))
        results.failures = list(zip(failures, of_failures, strict=True))
    return results


def _judge(piece: Piece[Result_co]) -> Result_co:
    return piece.judge()


def ask_otava(results: Results, peers: Peers, folder: Path) -> None:
    """Adds Otava's answers to the results, in one call for each length of series; none where it is not installed."""
    if peers.python is None:
        return
    otava = Otava(peers.python)
    samples = [each for family in results.families.values() for each in family.series]
    planted = [found.series for _, found in results.shifts if found.series is not None]
    pairs = [*((base, head) for base, head, _ in samples), *planted]
    answers = iter(_answers(otava, pairs, folder))
    for family in results.families.values():
        red: dict[int, bool] = {}
        for _, _, runs in family.series:
            answer = next(answers)
            for run, flag in zip(runs.tolist(), answer.tolist(), strict=True):
                red[int(run)] = red.get(int(run), False) or flag
            family.rules.setdefault(otava.name, Alarms()).add(Alarms(comparisons=len(runs), fired=int(answer.sum())))
        family.rules[otava.name].add(Alarms(runs=len(red), red=sum(red.values())))
    for _, found in results.shifts:
        if found.series is not None:
            found.found[otava.name] = int(next(answers).sum())


def _answers(otava: Otava, pairs: Sequence[tuple[Numbers, Numbers]], folder: Path) -> list[Flags]:
    """Otava's results for each pair of samples, in their order."""
    found: dict[int, Flags] = {}
    for trials in {base.shape[1] for base, _ in pairs}:
        alike = [number for number, (base, _) in enumerate(pairs) if base.shape[1] == trials]
        base, head = (np.concatenate([pairs[number][side] for number in alike]) for side in range(2))
        ends = np.cumsum([len(pairs[number][0]) for number in alike])[:-1]
        found |= dict(zip(alike, np.split(otava.fires(base, head, folder), ends), strict=True))
    return [found[number] for number in range(len(pairs))]
