"""Targets of the gate, and the bound if a target is out of reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from benchmarks.scorecard.document import spent_in, steady
from benchmarks.scorecard.family import Alarms
from benchmarks.scorecard.interval import Rate, clopper_pearson
from benchmarks.scorecard.plan import MAIN_SHIFT, SEED_DATA, Plan
from benchmarks.scorecard.power import Found, PlantedShift
from benchmarks.scorecard.rules.chosen import OURS
from benchmarks.scorecard.work import Results

LARGEST_FALSE_ALARM: Final = 0.01
LARGEST_BOUND_OF_FALSE_ALARM: Final = 0.02
LEAST_POWER: Final = 0.90
LEAST_POWER_OF_FAILURES: Final = 0.90
LEAST_POWER_OF_DOUBLING: Final = 0.90
LARGEST_MEDIAN: Final = 15
IN_TURNS: Final = "in_turns"
LARGEST_SPENT: Final = 30


@dataclass(frozen=True)
class Target:
    """One of them, for one data set.

    Attributes:
        measured: in words.
        bound: in words, where it was missed; empty where it was met.
    """

    name: str
    data: str
    met: bool
    measured: str
    bound: str = ""

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def check_all(plan: Plan, results: Results) -> list[Target]:
    return [*_false_alarms(plan, results), *_shifts(plan, results), *_failures(results), *_doubling(results)]


def _false_alarms(plan: Plan, results: Results) -> Iterator[Target]:
    """Targets for all data, and for data with time between base and head."""
    for name, sets in (("all", plan.data_sets), ("sequential", [each for each in plan.data_sets if each.drifts])):
        alarms = Alarms()
        for data in sets:
            alarms.add(results.families[data.name].rules[OURS.name])
        if alarms.runs:
            rate = clopper_pearson(alarms.red, alarms.runs)
            met = rate.rate <= LARGEST_FALSE_ALARM and rate.high <= LARGEST_BOUND_OF_FALSE_ALARM
            yield Target("A/A runs red ≤ 1 %, upper 95 % bound ≤ 2 %", name, met, f"{_exact(rate)}, {alarms.runs} runs")


def _shifts(plan: Plan, results: Results) -> Iterator[Target]:
    name = f"{MAIN_SHIFT} found ≥ 90 % where CV ≤ 10 %, median of head trials ≤ 15, at most 30"
    sets = [("all that are interleaved", [data for data in plan.data_sets if IN_TURNS in data.name])]
    for title, chosen in [*sets, *((data.name, [data]) for data in plan.data_sets)]:
        names = {data.name for data in chosen}
        cells = [each for each in results.shifts if each[0].data.name in names and each[0].shift == MAIN_SHIFT]
        cells = steady(cells)
        if not cells:
            continue
        rate = clopper_pearson(sum(found.found[OURS.name] for _, found in cells), sum(found.runs for _, found in cells))
        trials = spent_in(cells)
        met = rate.rate >= LEAST_POWER and trials["median"] <= LARGEST_MEDIAN and trials["max"] <= LARGEST_SPENT
        measured = f"{rate}; head trials: median {trials['median']:g}, max {trials['max']:g}"
        yield Target(name, title, met, measured, "" if met else _bound(cells))


def _bound(cells: list[tuple[PlantedShift, Found]]) -> str:
    bounds, fewest = [found.bound for _, found in cells], [found.fewest for _, found in cells]
    lowest, mean = min(bounds), sum(bounds) / len(bounds)
    return (
        f"the best test with known noise: {100 * mean:.1f} % with all 30 trials (worst metric {100 * lowest:.1f} %), "
        f"a median of {min(fewest)} to {max(fewest)} head trials"
    )


def _failures(results: Results) -> Iterator[Target]:
    for planted, found in results.failures:
        rate = clopper_pearson(found.found[OURS.name], found.runs)
        met = rate.rate >= LEAST_POWER_OF_FAILURES
        bound = "" if met else f"the best exact test after all 30 trials: {100 * found.bound:.1f} %"
        yield Target("failures 0 → 30 % found ≥ 90 %, 30 against 60", planted.data.name, met, str(rate), bound)


def _doubling(results: Results) -> Iterator[Target]:
    for planted, found in results.shifts:
        if (planted.data.name, planted.scenario, planted.metric) == (SEED_DATA, "baseline", "T4"):
            if planted.shift != "+100%":
                continue
            rate = clopper_pearson(found.found[OURS.name], found.runs)
            met = rate.rate >= LEAST_POWER_OF_DOUBLING
            bound = "" if met else f"the best test with known noise: {100 * found.bound:.1f} %"
            yield Target("a doubling of T4 found ≥ 90 % within 30 trials", SEED_DATA, met, str(rate), bound)


def _exact(rate: Rate) -> str:
    return f"{100 * rate.rate:.2f} % ({100 * rate.low:.2f} – {100 * rate.high:.2f})"
