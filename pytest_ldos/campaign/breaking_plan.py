"""Plan of a search for a breaking point."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ldos.campaign.bisection import SearchPlan
from pytest_ldos.campaign.criterion import Criterion


@dataclass(frozen=True, kw_only=True)
class BreakingPlan:
    """Varied setting, criterion and limits of a search.

    Attributes:
        address: the varied setting, e.g. ``dds_flood.rate_hz``.
        time_limit_s: no start begins that is expected to end later; ``None`` for no limit.
    """

    address: str
    search: SearchPlan
    criterion: Criterion
    time_limit_s: float | None = None
