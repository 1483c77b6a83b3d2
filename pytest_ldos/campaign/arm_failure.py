"""Detects starts that the arm itself ended: a search counts them as broken trials, a sweep as broken cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.robot.stack.goals import OutcomeClass

Answer = TypeVar("Answer", bool, bool | None)


def arm_ended(trials: TrialSet) -> bool:
    """True if the arm failed under all its loads so that no further trial was possible.

    Either its stack died, or it could not return home. A failure before all loads were running says nothing about
    them. For interleaved versions, the record does not show whose stack failed.
    """
    return bool(trials.incomplete) and not trials.session and len(trials.loads) >= len(trials.spec.loads)


def has_lost_motion(trials: TrialSet) -> bool:
    """True if the start ended in a motion that is not a trial, such as the way home."""
    last = trials.trials[-1] if trials.trials else None
    return arm_ended(trials) and (last is None or last.outcome is not OutcomeClass.STACK_DIED)


def with_lost_motion(broken: Sequence[Answer], trials: TrialSet) -> list[Answer]:
    """Tells for each trial if it is broken, with the way home counted as part of it: also if it took two attempts.

    Args:
        broken: result of each trial by itself. A start that failed before its first trial yields one broken trial.
    """
    answers = list(broken)
    for place, trial in enumerate(trials.motions):
        if trial.reset_failure:
            answers[place] = True
    if has_lost_motion(trials):
        answers[-1:] = [True]
    return answers
