"""The rounds of a case, combined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_ldos.base.stats.location import median
from pytest_ldos.instruments.latency.case import Case
from pytest_ldos.instruments.latency.distribution import Distribution
from pytest_ldos.instruments.latency.exchange import Exchange
from pytest_ldos.instruments.latency.timings import Percentiles, combine


@dataclass(frozen=True)
class CaseFindings:
    """A case and its rounds, in order.

    Attributes:
        distribution: distribution of all its round trips; empty where they are not known one by one.
    """

    case: Case
    exchanges: Sequence[Exchange]
    distribution: Distribution

    @property
    def round_trip(self) -> Percentiles | None:
        return _combined(each.round_trip for each in self.exchanges)

    @property
    def there(self) -> Percentiles | None:
        return _combined(each.there for each in self.exchanges)

    @property
    def back(self) -> Percentiles | None:
        return _combined(each.back for each in self.exchanges)

    @property
    def per_second(self) -> float | None:
        known = [each.per_second for each in self.exchanges if each.round_trip is not None]
        return median(known) if known else None

    @property
    def lost(self) -> int:
        return sum(each.lost for each in self.exchanges)


def by_case(cases: Sequence[Case], exchanges: Iterable[Exchange]) -> list[CaseFindings]:
    """Groups exchanges in the order of the cases; adds times to histograms as they come, and does not keep them."""
    kept: dict[Case, list[Exchange]] = {case: [] for case in cases}
    distributions = {case: Distribution() for case in cases}
    for each in exchanges:
        if each.times_ns is not None:
            distributions[each.case].add(each.times_ns)
        kept[each.case].append(each.without_times())
    return [CaseFindings(case, kept[case], distributions[case]) for case in cases]


def _combined(parts: Iterable[Percentiles | None]) -> Percentiles | None:
    known = [each for each in parts if each is not None]
    return combine(known) if known else None
