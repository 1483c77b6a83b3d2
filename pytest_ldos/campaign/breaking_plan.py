"""What a search for a breaking point is to find."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ldos.campaign.bisection import SearchPlan
from pytest_ldos.campaign.criterion import Criterion


@dataclass(frozen=True, kw_only=True)
class BreakingPlan:
    """What is searched for.

    Attributes:
        address: what is varied, e.g. ``dds_flood.rate_hz``.
        time_limit_s: no start begins that would not end by then; ``None`` for no limit.
    """

    address: str
    search: SearchPlan
    criterion: Criterion
    time_limit_s: float | None = None
