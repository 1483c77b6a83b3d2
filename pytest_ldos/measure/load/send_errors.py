"""Deviations of sends from their schedule, counted in bins instead of stored one by one.

Bins are 1 ns wide up to 32 ns, then a 32nd to a 16th of their lower end: 16 for each power of two.
`ldos_load`'s `ErrorBins` has the same bins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

_BITS: Final = 5
_BINS_AN_OCTAVE: Final = 1 << (_BITS - 1)


def bin_of(error_ns: int) -> int:
    """Returns the bin of an error of either sign."""
    size_ns = abs(error_ns)
    shift = max(0, size_ns.bit_length() - _BITS)
    return shift * _BINS_AN_OCTAVE + (size_ns >> shift)


def top_of(number: int) -> int:
    """Returns the largest error that a bin holds, ns."""
    shift = max(0, number // _BINS_AN_OCTAVE - 1)
    return ((number - shift * _BINS_AN_OCTAVE + 1) << shift) - 1


@dataclass(frozen=True)
class SendErrors:
    """Sizes of inter-send errors: deviations of the interval between two sends of one publisher from the schedule.

    Attributes:
        bins: number of errors in each bin.
    """

    bins: Mapping[int, int]

    @property
    def count(self) -> int:
        return sum(self.bins.values())

    def percentile_ns(self, percent: float) -> int:
        """Returns a size that at least `percent` of the errors do not exceed (to a bin's width); 0 without errors."""
        wanted, seen = percent / 100 * self.count, 0
        for number in sorted(self.bins):
            seen += self.bins[number]
            if seen >= wanted:
                return top_of(number)
        return 0

    def since(self, earlier: SendErrors) -> SendErrors:
        """Returns the errors that came after `earlier`."""
        more = {number: count - earlier.bins.get(number, 0) for number, count in self.bins.items()}
        return SendErrors({number: count for number, count in more.items() if count})


def all_errors(parts: Iterable[SendErrors]) -> SendErrors:
    """Combines the errors of several publishers."""
    total: Counter[int] = Counter()
    for part in parts:
        total.update(part.bins)
    return SendErrors(total)
