"""Reasons for metrics whose samples could not have detected any change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from pytest_ldos.base.series import Series
from pytest_ldos.base.stats.rank_sum import fewest_trials
from pytest_ldos.judge.gate.case import Case
from pytest_ldos.judge.gate.comparison import Comparison
from pytest_ldos.judge.gate.hypothesis import is_blind
from pytest_ldos.judge.gate.reasons import TooFewComparable, TooFewInBaseline, TooFewTrials, Unusable

Blind = TooFewComparable | TooFewInBaseline | TooFewTrials


def explain_blind(comparisons: Sequence[Comparison], case: Case) -> Iterator[Blind]:
    """One reason for all metrics that have equally many values and lack the same."""
    blind = sorted(filter(is_blind, comparisons), key=_kind)
    for _, group in groupby(blind, key=_kind):
        yield _explain(list(group), case)


def _kind(found: Comparison) -> tuple[bool, bool, int, int]:
    return not found.base_needs, _is_enough(found), found.head_count, found.base_count


def _is_enough(found: Comparison) -> bool:
    """True if both sides have the trials that may detect a change: then it is their values that are missing."""
    return 0 < _required(found) <= min(found.head_count, found.base_count)


def _required(found: Comparison) -> int:
    """Trials on both sides that may detect a change; 0 if unknown."""
    return fewest_trials(tail=found.tail) if found.tail > 0 else 0


def _why_unusable(head: Series, base: Series, *, is_interleaved: bool) -> Unusable:
    if any(2 * len(each.finite) < len(each) for each in (head, base)):
        return Unusable.FAILED
    pairs = [{block // 2 for block in each.blocks} for each in (head, base)] if is_interleaved else [set(), set()]
    is_paired = set(head.strata) == set(base.strata) and pairs[0] == pairs[1]
    return Unusable.UNKNOWN_NOISE if is_paired else Unusable.UNPAIRED


def _explain(alike: Sequence[Comparison], case: Case) -> Blind:
    first = alike[0]
    counts = tuple(each.metric for each in alike), first.head_count, first.base_count
    if first.base_needs:
        return TooFewInBaseline(*counts, max(each.base_needs for each in alike))
    if _is_enough(first):
        return TooFewComparable(*counts, _why_unusable(*case.series(first.metric), is_interleaved=case.is_interleaved))
    return TooFewTrials(*counts, max(map(_required, alike)))
