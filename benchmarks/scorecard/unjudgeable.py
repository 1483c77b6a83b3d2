"""A machine that is noisy in some metrics alone: what becomes of its runs, and of changes in the others.

    python -m benchmarks.scorecard.unjudgeable 400

The made numbers are an idle virtual machine's, on which 30 + 30 interleaved trials could have detected 24 % of T1, but only
215 % of T3 and 429 % of T3p99. The gate that must judge every metric is compared with the one that sets aside what this
machine cannot judge.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.scorecard.data_sets.process import TYPICAL_MS, Machine, Process
from benchmarks.scorecard.data_sets.simulated import Simulated
from benchmarks.scorecard.document import spent
from benchmarks.scorecard.interval import clopper_pearson
from benchmarks.scorecard.plan import SEED
from benchmarks.scorecard.rules.ours import Judged, Ours
from benchmarks.scorecard.sample import generator
from pytest_ldos.judge.gate.verdict import Verdict

NOISY: Final = Machine(
    processes={
        "T1": Process(trial_sd=0.10, start_sd=0.03),
        "T2": Process(trial_sd=0.005, start_sd=0.001),
        "T2x": Process(trial_sd=0.04, start_sd=0.01),
        "T3": Process(trial_sd=0.62, start_sd=0.28),
        "T3p99": Process(trial_sd=0.85, start_sd=0.45),
        "T4": Process(trial_sd=0.006, start_sd=0.001),
        "T5": Process(trial_sd=0.3, start_sd=0.1),
        "T5p99": Process(trial_sd=0.55, start_sd=0.25),
    },
    typical_ms={**TYPICAL_MS, "T2x": 30.0, "T3p99": 0.4, "T5p99": 0.3},
)
"""Trials of T1 differ by 10 %; the periods of control and simulation vary by what else the machine does."""

DATA: Final = Simulated(
    name="noisy_tails",
    title="noisy in T3 and T5 alone, interleaved",
    about=__doc__,
    machines={"baseline": NOISY},
    interleaved=True,
    metrics=tuple(NOISY.processes),
    scenarios=("baseline",),
)

RULES: Final = (
    Ours(calibrated=False, name="all", title="every metric required", required=tuple(NOISY.processes)),
    Ours(calibrated=False, name="own", title="what the host can judge"),
    Ours(calibrated=True, name="known", title="the same, calibrated"),
)
SHIFTS: Final = (("nothing", "T1", 1.0), ("T1 +15 %", "T1", 1.15), ("T3 ×2", "T3", 2.0), ("T3 ×6", "T3", 6.0))
CHUNK: Final = 20


@dataclass
class Counted:
    """Verdicts and findings, counted over runs.

    Attributes:
        found: runs in which the metric with the shift was called regressed.
        unjudged: runs in which each metric was not judged.
        mde: minimum detectable effects of each metric.
    """

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    found: int = 0
    unjudged: Counter[str] = field(default_factory=Counter)
    head_trials: Counter[int] = field(default_factory=Counter)
    mde: Mapping[str, list[float]] = field(default_factory=lambda: {name: [] for name in NOISY.processes})

    @property
    def runs(self) -> int:
        return self.verdicts.total()

    def add(self, judged: Judged, metric: str) -> None:
        self.verdicts[judged.verdict] += 1
        self.found += metric in judged.regressed
        self.unjudged.update(judged.unjudged)
        self.head_trials[judged.head_trials] += 1
        for name, mde in judged.mde.items():
            self.mde[name].append(mde)


def judge_chunk(first: int, *, runs: int, rule: Ours, shift: tuple[str, str, float]) -> list[Judged]:
    """The same numbers for every rule and shift."""
    _, metric, factor = shift
    batch = DATA.draw("baseline", runs, generator(SEED, DATA.name, first)).with_shift(metric, factor)
    return [rule.judge(batch, run, scenarios=1) for run in range(runs)]


def judge_runs(runs: int, rule: Ours, shift: tuple[str, str, float], pool: ProcessPoolExecutor) -> Counted:
    counted = Counted()
    chunks = pool.map(partial(judge_chunk, runs=min(CHUNK, runs), rule=rule, shift=shift), range(0, runs, CHUNK))
    for judged in chunks:
        for each in judged:
            counted.add(each, shift[1])
    return counted


def table_of(found: Sequence[tuple[str, str, Counted]]) -> Table:
    table = Table(
        "planted", "rule", "red, %", "found, %", "passed", "inconclusive", "head trials", "not judged", title=DATA.title
    )
    for shift, rule, counted in found:
        red, at = (
            clopper_pearson(count, counted.runs) for count in (counted.verdicts[Verdict.REGRESSED], counted.found)
        )
        unjudged = ", ".join(
            f"{name} {100 * count / counted.runs:.0f} %" for name, count in counted.unjudged.most_common()
        )
        table.add_row(
            shift,
            rule,
            str(red),
            str(at) if shift != "nothing" else "",
            *(
                f"{100 * counted.verdicts[each] / counted.runs:.1f} %"
                for each in (Verdict.PASSED, Verdict.INCONCLUSIVE)
            ),
            f"median {spent(counted.head_trials)['median']:g}, mean {spent(counted.head_trials)['mean']:g}",
            unjudged,
        )
    return table


def effects_of(counted: Counted) -> Iterator[str]:
    """Median of the minimum detectable effect of each metric."""
    yield from (f"{name} {100 * float(np.median(values)):.0f} %" for name, values in counted.mde.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=int, nargs="?", default=100)
    runs = parser.parse_args().runs
    with ProcessPoolExecutor() as pool:
        found = [(shift[0], rule.title, judge_runs(runs, rule, shift, pool)) for shift in SHIFTS for rule in RULES]
    console = Console(width=180)
    console.print(table_of(found))
    console.print(
        f"{runs} runs each; detectable at the last look, every metric required: {', '.join(effects_of(found[0][2]))}"
    )


if __name__ == "__main__":
    main()
