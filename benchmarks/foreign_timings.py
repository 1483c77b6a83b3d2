"""The gate on other people's timings: fresh processes of unchanged code, in the order in which they ran.

    python -m benchmarks.foreign_timings FOLDER    # result files of pyperf, each of one night on one machine

pyperf measures each benchmark in some twenty processes, one after the other, with a few values each; a process stands
for a start of the stack, a value for a trial. Public collections of such files are the results of pyperformance on
CPython. Within one file nothing changed. The next night's file is of another commit: what is red there may be a
change, and its rate is an upper bound.

A run is four scenarios of five benchmarks, drawn by chance. For each design it prints runs that are red, with the upper
95 % bound, and +15 % of one benchmark that is found where its coefficient of variation is 10 % or less, for ours,
Mann-Whitney and Welch's test at 0.01/20. The same files and seed give the same numbers.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.scorecard.data_sets.calibration import learn_noise
from benchmarks.scorecard.interval import clopper_pearson
from benchmarks.scorecard.rules.chosen import OURS, OURS_CALIBRATED
from benchmarks.scorecard.rules.classical import MannWhitney, Welch
from benchmarks.scorecard.rules.protocol import Rule
from benchmarks.scorecard.sample import METRICS, SCENARIOS, Batch, Numbers, Side, generator
from pytest_ldos.judge.baseline.key import MetricNoise
from pytest_ldos.measure.trial.record import Look

SEED: Final = 20261124
PROCESSES: Final = 20
VALUES: Final = 3
PLANTED: Final = 1.15
STEADY_CV: Final = 0.1
OTHERS: Final[tuple[Rule, ...]] = (MannWhitney(0.01 / 20, "mann_whitney"), Welch(0.01 / 20, "welch"))

Night = Mapping[str, Numbers]
"""Seconds of each benchmark, shape (processes, values)."""


def read_night(file: Path) -> Night:
    """Benchmarks of one file with `PROCESSES` processes of `VALUES` values or more; the first of each are taken."""
    found: dict[str, Numbers] = {}
    document: dict[str, Any] = json.loads(file.read_text("utf-8"))
    for benchmark in document["benchmarks"]:
        runs = [run["values"][:VALUES] for run in benchmark["runs"] if len(run.get("values", ())) >= VALUES]
        name = benchmark.get("metadata", {}).get("name", "")
        if name and len(runs) >= PROCESSES:
            found[name] = np.array(runs[:PROCESSES], dtype=np.float64)
    return found


@dataclass(frozen=True, kw_only=True)
class Design:
    """Processes of base and of head, and how many of their values are taken.

    Attributes:
        nights: 0 within one file; 1 if head's processes are of the next one.
        calibrated_by: files before base's that one calibration knows; 0 for none.
    """

    name: str
    base: Sequence[int]
    head: Sequence[int]
    values: int
    looks: tuple[int, ...]
    nights: int = 0
    calibrated_by: int = 0
    interleaved: bool = False


def _interleave(pairs: int) -> tuple[list[int], list[int]]:
    """Processes of base and of head: base, head, head, base, and so on."""
    heads = [2 * pair + 1 - pair % 2 for pair in range(pairs)]
    return [number for number in range(2 * pairs) if number not in heads], heads


_BASE, _HEAD = _interleave(10)
_TURNS: Final = partial(Design, base=_BASE, head=_HEAD, interleaved=True)

DESIGNS: Final = (
    _TURNS(name="in turns, 5 x 2", base=_BASE[:5], head=_HEAD[:5], values=2, looks=(10,)),
    _TURNS(name="in turns, 5 x 2 to 10 x 2", values=2, looks=(10, 16, 20)),
    _TURNS(name="in turns, 10 x 3", values=3, looks=(30,)),
    Design(name="halves of a night, 3 x 3", base=range(3), head=range(17, 20), values=3, looks=(9,)),
    Design(name="halves of a night, 10 x 3", base=range(10), head=range(10, 20), values=3, looks=(30,)),
    Design(name="next night, 1 x 3", base=[0], head=[0], values=3, looks=(3,), nights=1),
    Design(name="next night, 3 x 3", base=range(3), head=range(3), values=3, looks=(9,), nights=1),
    Design(name="next night, 10 x 3", base=range(10), head=range(10), values=3, looks=(30,), nights=1),
    Design(name="next night, 3 x 3, 1 calibrated", base=range(3), head=range(3), values=3, looks=(9,), nights=1, calibrated_by=1),
    Design(name="next night, 3 x 3, 5 calibrated", base=range(3), head=range(3), values=3, looks=(9,), nights=1, calibrated_by=5),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Results:
    """Counts of one design, of ours and of the others.

    Attributes:
        red: unchanged runs.
        found: planted changes of `planted` steady benchmarks.
        head_trials: median number of trials that ours saw of head in these; NaN where none was steady.
    """

    red: Numbers
    found: Numbers
    planted: int
    head_trials: float


def draw(nights: Sequence[Night], design: Design, rng: np.random.Generator) -> Batch:
    """One run of one scenario: five benchmarks of one night, as five metrics."""
    first = int(rng.integers(design.calibrated_by, len(nights) - design.nights))
    before = nights[first - design.calibrated_by : first]
    ours, theirs = nights[first + design.nights], nights[first]
    names = sorted(set(ours).intersection(theirs, *before))
    chosen = dict(zip(METRICS, rng.choice(names, len(METRICS), replace=False), strict=True))
    sides = []
    for night, processes in ((theirs, design.base), (ours, design.head)):
        values = {metric: 1e3 * night[name][list(processes), : design.values].reshape(1, -1) for metric, name in chosen.items()}  # fmt: skip
        blocks = np.repeat(np.array(processes), design.values)
        sides.append(Side(values=values, failed=np.zeros((1, blocks.size), dtype=np.bool_), blocks=blocks))
    noise: tuple[Mapping[str, MetricNoise], ...] = ()
    if before:
        noise = ({metric: learn_noise(np.stack([each[name][:8] for each in before])) for metric, name in chosen.items()},)  # fmt: skip
    looks = tuple(Look(count, count) for count in design.looks)
    return Batch(
        scenario="baseline", base=sides[0], head=sides[1], looks=looks, interleaved=design.interleaved, noise=noise
    )


def _fired(rule: Rule, batch: Batch, metric: str) -> bool:
    return bool(rule.fires(batch.base.values[metric], batch.head.values[metric], batch.base.blocks)[0])


def _cv(values: Numbers) -> float:
    return float(np.std(np.log(values), ddof=1))


def judge(nights: Sequence[Night], design: Design, *, runs: int, seed: int) -> Results:
    """Unchanged runs, and one metric of each made slower."""
    gate = OURS_CALIBRATED if design.calibrated_by else OURS
    rng = generator(seed, design.name)
    red, found, planted, trials = np.zeros((runs, 3)), np.zeros(3), 0, []
    for run in range(runs):
        batches = [draw(nights, design, rng) for _ in SCENARIOS]
        for batch in batches:
            red[run, 0] += gate.judge(batch, 0, scenarios=len(SCENARIOS)).red
            red[run, 1:] += [any(_fired(rule, batch, metric) for metric in METRICS) for rule in OTHERS]
        slow = batches[0].with_shift(METRICS[0], PLANTED)
        if max(_cv(side.values[METRICS[0]]) for side in (slow.base, slow.head)) > STEADY_CV:
            continue
        judged = gate.judge(slow, 0, scenarios=len(SCENARIOS))
        trials.append(judged.head_trials)
        found += [METRICS[0] in judged.regressed, *(_fired(rule, slow, METRICS[0]) for rule in OTHERS)]
        planted += 1
    return Results(
        red=(red > 0).sum(axis=0),
        found=found,
        planted=planted,
        head_trials=float(np.median(trials)) if trials else math.nan,
    )


def describe(design: Design, results: Results, runs: int) -> Iterator[str]:
    """A line for each rule."""
    for place, title in enumerate(("ours", *(rule.title for rule in OTHERS))):
        alarms = clopper_pearson(int(results.red[place]), runs)
        found = clopper_pearson(int(results.found[place]), results.planted) if results.planted else "none is steady"
        trials = f"{results.head_trials:6.0f}" if place == 0 else ""
        yield f"{design.name:33} {title:26} {100 * alarms.rate:5.1f} (<= {100 * alarms.high:4.1f})   {found}   {trials}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    nights = [night for file in sorted(options.folder.glob("*.json")) if len(night := read_night(file)) >= len(METRICS)]
    if len(nights) < 7:
        parser.error(f"{options.folder} has {len(nights)} files of {PROCESSES} processes a benchmark; 7 are needed")
    print(
        f"{len(nights)} nights, {options.runs} runs of {len(SCENARIOS)} x {len(METRICS)} benchmarks, seed {options.seed}"
    )
    print(f"{'design':33} {'rule':26} {'red %':>5} {'':10} +15 % found")
    with ProcessPoolExecutor() as pool:
        work = partial(judge, nights, runs=options.runs, seed=options.seed)
        for design, results in zip(DESIGNS, pool.map(work, DESIGNS), strict=True):
            for line in describe(design, results, options.runs):
                print(line, flush=True)


if __name__ == "__main__":
    main()
