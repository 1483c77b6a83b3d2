"""Sentences about the processes in which a sum over several of them moved."""

from __future__ import annotations

from typing import Final

from pytest_ldos.base.units import format_quantity
from pytest_ldos.judge.explain.parts import PartChange, PartsExplanation

_MOST: Final = 3
"""Processes that are named for one metric."""

_SMALLEST_SHARE: Final = 0.05


def describe_parts(found: PartsExplanation) -> str:
    """``cpu_all: 97 % of it in state_publisher, +48.1 ms [+40, +56]``."""
    named = [each for each in found.parts if each.share >= _SMALLEST_SHARE and each.is_certain][:_MOST]
    where = "; ".join(_describe(each, found.metric.unit) for each in named)
    return f"{found.metric.name}: {where or 'no single process stands out'}"


def _describe(part: PartChange, unit: str) -> str:
    sign = "+" if part.change >= 0 else "-"
    change = f"{sign}{format_quantity(abs(part.change), unit)} [{part.low:+.3g}, {part.high:+.3g}]"
    return f"{100 * part.share:.0f} % of it in {part.process}, {change}"
