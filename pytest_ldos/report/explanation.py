"""An explanation in sentences: which segments gained the time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pytest_ldos.explain.explain import METRIC_PATHS, Explanation, SegmentChange
from pytest_ldos.gate.comparison import Comparison
from pytest_ldos.gate.decide import GateResult
from pytest_ldos.gate.verdict import Verdict
from pytest_ldos.units import format_quantity, ns_to_ms

_MOVED: Final = frozenset({Verdict.REGRESSED, Verdict.IMPROVED})
_MOST: Final = 3
"""Segments that are named for one path."""

_SMALLEST_SHARE: Final = 0.05
_SMALLEST_EFFECT: Final = 0.05
"""Relative change of a path that is no metric, from which it is mentioned."""


def describe_explanation(result: GateResult, explained: Mapping[str, Explanation]) -> tuple[str, ...]:
    """Sentences on the metrics that moved, and on further paths that did."""
    of_metrics = [line for each in result.comparisons for line in _describe_metric(each, explained)]
    others = [each for name, each in explained.items() if name not in METRIC_PATHS.values()]
    return (*of_metrics, *(_describe(each, f"path {each.path}") for each in others if _has_moved(each)))


def _describe_metric(comparison: Comparison, explained: Mapping[str, Explanation]) -> Iterator[str]:
    explanation = explained.get(METRIC_PATHS.get(comparison.metric, ""))
    if comparison.verdict in _MOVED and explanation is not None:
        yield _describe(explanation, comparison.metric)


def _has_moved(explanation: Explanation) -> bool:
    whole = explanation.whole
    return whole.is_certain and abs(whole.change_ns) > _SMALLEST_EFFECT * whole.base_ns


def _describe(explanation: Explanation, name: str) -> str:
    named = [each for each in explanation.changes if each.share >= _SMALLEST_SHARE and each.is_certain][:_MOST]
    where = "; ".join(f"{100 * each.share:.0f} % of it in {each.segment}, {_change(each)}" for each in named)
    return f"{name} {_change(explanation.whole)}: {where or 'no single segment stands out'}"


def _change(change: SegmentChange) -> str:
    """``+5.04 ms [+5.00, +5.08]``."""
    low, high = (f"{ns_to_ms(bound):+.3g}" for bound in (change.low_ns, change.high_ns))
    sign = "+" if change.change_ns >= 0 else "-"
    return f"{sign}{format_quantity(abs(ns_to_ms(change.change_ns)), 'ms')} [{low}, {high}]"
