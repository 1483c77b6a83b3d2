"""Spread, upper tail and rises within a run in words."""

from __future__ import annotations

from typing import assert_never

from pytest_ldos.judge.gate.shape import Aspect, LateRise, Spread, Tail


def describe_aspect(aspect: Aspect) -> str:
    """``spread × 2.1 (on average 13.4 % from the median, 6.4 % in the baseline)``."""
    match aspect:
        case Spread(base, head):
            growth = f" × {head / base:.2g}" if base else ""
            return f"spread{growth} (on average {_percent(head)} from the median, {_percent(base)} in the baseline)"
        case Tail(base, head, beyond):
            shares = f"{100 * head:.0f} % of the trials, {100 * base:.0f} % in the baseline"
            return f"tail: {shares}, are more than {_percent(beyond)} worse than their median"
        case LateRise(from_trial, ratio):
            return f"worse from trial {from_trial} on: × {ratio:.2f}"
        case _:
            assert_never(aspect)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
