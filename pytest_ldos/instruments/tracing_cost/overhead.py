"""The latency that recording adds to messages, from interleaved starts.

The unit is a start: messages of one process are too much alike for an interval over all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from pytest_ldos.base.stats.mean_interval import mean_interval
from pytest_ldos.base.units import NS_PER_US
from pytest_ldos.instruments.tracing_cost.modes import Mode
from pytest_ldos.instruments.tracing_cost.pairs import Start
from pytest_ldos.instruments.tracing_cost.spec import Case

TARGET_US: Final = 3.3
"""The mean that the seed found over all its experiments."""

_Numbers = npt.NDArray[np.float64]
Center = Callable[[_Numbers], float]


class Answer(StrEnum):
    """Compares an overhead's interval with the target."""

    MET = "met"
    MISSED = "missed"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Overhead:
    """Mean over the pairs in µs, with its 95 % interval; a single pair has no bounds."""

    value: float
    low: float | None
    high: float | None

    @property
    def answer(self) -> Answer:
        """Comparison with `TARGET_US`."""
        if self.low is None or self.high is None:
            return Answer.UNDECIDED
        if self.high <= TARGET_US:
            return Answer.MET
        return Answer.MISSED if self.low > TARGET_US else Answer.UNDECIDED


@dataclass(frozen=True)
class PairedStarts:
    """A start without and one with tracing, of the same pair number."""

    plain: Start
    traced: Start

    def latencies_us(self, case: Case) -> tuple[_Numbers, _Numbers] | None:
        """Returns the latencies without and with tracing; ``None`` if either is missing."""
        found = [np.array(start.cases[case].latencies_ns) for start in (self.plain, self.traced) if case in start.cases]
        if len(found) < 2 or not all(len(each) for each in found):
            return None
        return found[0] / NS_PER_US, found[1] / NS_PER_US


def pair_up(starts: Sequence[Start], mode: Mode) -> list[PairedStarts]:
    """Pairs the starts of one layer by number, where neither of the two failed."""
    plain = {start.pair: start for start in starts if start.mode is Mode.UNTRACED and not start.failure}
    traced = {start.pair: start for start in starts if start.mode is mode and not start.failure}
    return [PairedStarts(plain[number], traced[number]) for number in sorted(plain.keys() & traced.keys())]


def mean_of(values: _Numbers) -> float:
    return float(np.mean(values))


def median_of(values: _Numbers) -> float:
    return float(np.median(values))


def overhead_of(pairs: Sequence[PairedStarts], cases: Sequence[Case], center: Center) -> Overhead | None:
    """Overhead in one case, or over all messages of several: subtracts each case's center without tracing first.

    Args:
        center: center of a start's latencies: `mean_of` or `median_of`.
    """
    shifted = [list(_shifted(pair, cases, center)) for pair in pairs]
    differences = [center(np.concatenate(parts)) for parts in shifted if parts]
    if not differences:
        return None
    low, high = mean_interval(differences)
    has_bounds = len(differences) > 1
    return Overhead(float(np.mean(differences)), low if has_bounds else None, high if has_bounds else None)


def _shifted(pair: PairedStarts, cases: Sequence[Case], center: Center) -> Iterator[_Numbers]:
    for case in cases:
        found = pair.latencies_us(case)
        if found is not None:
            yield found[1] - center(found[0])


def level_of(pairs: Sequence[PairedStarts], case: Case, *, traced: bool) -> float | None:
    """Mean latency in µs over the starts of the pairs."""
    found = [both[traced] for pair in pairs if (both := pair.latencies_us(case)) is not None]
    return float(np.mean([np.mean(each) for each in found])) if found else None
