"""Allocates the probability of error of a comparison to its looks."""

from __future__ import annotations

from pytest_ldos.base.stats.spending import Fractions, level_of_last_look
from pytest_ldos.measure.trial.record import Look, TrialSet


def looks_of(head: TrialSet, base: TrialSet) -> tuple[Look, ...]:
    """Numbers of trials at each look of the comparison so far; the last entry is the present look.

    Looks that do not lead up to the present numbers belong to another base and are dropped.
    """
    now, earlier = Look(len(head.trials), len(base.trials)), [Look(0, 0)]
    for look in head.looks if _looked_at(head, base) else ():
        before = earlier[-1]
        grows = before.head <= look.head <= now.head and before.base <= look.base <= now.base
        if grows and before.information < look.information < now.information:
            earlier.append(look)
    return (*earlier[1:], now)


def _looked_at(head: TrialSet, base: TrialSet) -> bool:
    """True if the recorded looks were taken at a comparison with this base."""
    if head.session:
        return head.is_interleaved_with(base)
    return all(look.base == len(base.trials) for look in head.looks)


def fractions_of(head: TrialSet, base: TrialSet) -> Fractions:
    """Information fraction of each look: its information over the largest possible."""
    looks = looks_of(head, base)
    if looks[-1].information == 0:
        return (1.0,)
    last = head.last_look if head.last_look is not None and _looked_at(head, base) else looks[-1]
    most = max(last.information, looks[-1].information)
    return tuple(look.information / most for look in looks)


def level(alpha: float, fractions: Fractions) -> float:
    """The significance level of the present look."""
    return alpha if fractions == (1.0,) else level_of_last_look(alpha, fractions)
