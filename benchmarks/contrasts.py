"""Coverage and width of the gate's intervals on simulated numbers with a known change.

    python -m benchmarks.contrasts        # four minutes

Three designs: five and fifteen pairs of starts with two trials each, interleaved; and ten trials in three starts against a
stored baseline. Trials vary by 10 %; a share of their variance is the question's, which both versions answer.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from pytest_ldos.base.series import Better, Series
from pytest_ldos.base.stats.starts import Variance
from pytest_ldos.judge.gate.contrast import Contrast, contrast
from pytest_ldos.judge.unchanged import DEGREES, Between
from pytest_ldos.measure.metrics.latency import T1_MEAN

TRIALS_SD: Final = 0.1
TAILS: Final = (0.01, 0.001)
METRIC: Final = replace(T1_MEAN.description, adjust_for=(), adjust_where_alike=())


@dataclass(frozen=True)
class Case:
    """Components of simulated numbers, as standard deviations of logarithms.

    Attributes:
        correlation: share of the trials' variance that the question explains.
        starts, runs: between starts, and between runs.
        slow: share of the trials that take three times as long.
    """

    is_interleaved: bool
    trials: int
    correlation: float
    starts: float = 0.0
    runs: float = 0.0
    slow: float = 0.0

    @property
    def name(self) -> str:
        design = f"interleaved, {self.trials} trials" if self.is_interleaved else f"stored, {self.trials} trials"
        slow = f", {100 * self.slow:.0f} % × 3" if self.slow else ""
        return f"{design}{slow}"


CASES: Final = [
    *(Case(True, trials, share, starts) for trials in (10, 30) for share in (0.0, 0.5, 0.95) for starts in (0.0, 0.02)),
    *(Case(False, 10, share, 0.02, 0.03) for share in (0.0, 0.5, 0.95)),
    *(Case(inter, 30, 0.95, 0.02, 0.0 if inter else 0.03, slow=0.1) for inter in (True, False)),
]


def made(case: Case, rng: np.random.Generator) -> Contrast:
    """One comparison of two equal versions."""
    numbers = np.arange(case.trials)
    question = rng.normal(0, TRIALS_SD * np.sqrt(case.correlation), case.trials)
    place = numbers // 2 if case.is_interleaved else np.minimum(numbers * 3 // case.trials, 2)
    drift = rng.normal(0, 0.05, place.max() + 1)[place] if case.is_interleaved else 0.0
    both = []
    for version in (1, 0):
        own = rng.normal(0, TRIALS_SD * np.sqrt(1 - case.correlation), case.trials)
        start = rng.normal(0, case.starts, place.max() + 1)[place]
        slow = np.log(3) * (rng.random(case.trials) < case.slow)
        values = question + drift + start + own + slow + rng.normal(0, case.runs)
        both.append(_series(values, 2 * place + version if case.is_interleaved else place))
    known = Between(
        Variance(max(case.starts, 0.01) ** 2, DEGREES),
        Variance(case.runs**2 + case.starts**2 / 3, DEGREES),
        Variance(TRIALS_SD**2, 100.0),
    )
    return contrast(METRIC, *both, is_interleaved=case.is_interleaved, prior=known)


def _series(values: np.ndarray, blocks: np.ndarray) -> Series:
    count = len(values)
    return Series(
        name=METRIC.name,
        unit="ms",
        better=Better.LOWER,
        values=tuple(np.exp(values)),
        strata=("reach",) * count,
        blocks=tuple(map(int, blocks)),
        trials=tuple(range(count)),
        questions=tuple(f"reach {number}" for number in range(count)),
    )


def row(case: Case, draws: int) -> str:
    rng = np.random.default_rng([CASES.index(case), draws])
    shifts = [[found.shift(tail=tail) for tail in TAILS] for found in (made(case, rng) for _ in range(draws))]
    missed = [sum(shift[at].low > 0 for shift in shifts) / draws for at in range(len(TAILS))]
    width = float(np.median([each[-1].estimate - each[-1].low for each in shifts]))
    shares = " | ".join(f"{100 * each:.2f} %" for each in missed)
    return (
        f"| {case.name} | {case.correlation:g} | {100 * case.starts:g} % | {shares} | {100 * np.expm1(width):.1f} % |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=4000)
    asked = parser.parse_args()
    print(
        f"| design | question's share | starts | below 0 at {TAILS[0]:.1%} | at {TAILS[1]:.1%} | half width at {TAILS[1]:.1%} |"
    )
    print("| :-- | --: | --: | --: | --: | --: |")
    for case in CASES:
        print(row(case, asked.draws), flush=True)


if __name__ == "__main__":
    main()
