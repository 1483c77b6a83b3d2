"""How far sends were from their schedule: errors counted in bins, so that none is kept.

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
    """The bin of an error of any sign."""
    size_ns = abs(error_ns)
    shift = max(0, size_ns.bit_length() - _BITS)
    return shift * _BINS_AN_OCTAVE + (size_ns >> shift)


def top_of(number: int) -> int:
    """The largest error that a bin holds, ns."""
    shift = max(0, number // _BINS_AN_OCTAVE - 1)
    return ((number - shift * _BINS_AN_OCTAVE + 1) << shift) - 1


@dataclass(frozen=True)
class SendErrors:
    """Sizes of inter-send errors: by how much two sends of one publisher were nearer or farther than due.

    Attributes:
        bins: how many fell into each bin.
    """

    bins: Mapping[int, int]

    @property
    def count(self) -> int:
        return sum(self.bins.values())

    def percentile_ns(self, percent: float) -> int:
        """At least so many of a hundred are no larger (up to the width of a bin); 0 without any."""
        wanted, seen = percent / 100 * self.count, 0
        for number in sorted(self.bins):
            seen += self.bins[number]
            if seen >= wanted:
                return top_of(number)
        return 0

    def since(self, earlier: SendErrors) -> SendErrors:
        """Those that came after `earlier`."""
        more = {number: count - earlier.bins.get(number, 0) for number, count in self.bins.items()}
        return SendErrors({number: count for number, count in more.items() if count})


def all_errors(parts: Iterable[SendErrors]) -> SendErrors:
    """Those of several publishers together."""
    total: Counter[int] = Counter()
    for part in parts:
        total.update(part.bins)
    return SendErrors(total)
