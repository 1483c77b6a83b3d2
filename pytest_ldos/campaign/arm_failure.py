"""Whether it was the arm that ended a start: what a search counts as a broken trial, and a sweep as a broken cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pytest_ldos.stack.goals import OutcomeClass
from pytest_ldos.trial.record import TrialSet

Answer = TypeVar("Answer", bool, bool | None)


def arm_ended(trials: TrialSet) -> bool:
    """Whether the arm failed beside all its loads so that no further trial could be made: its stack died, or it could
    not return home.

    Before the loads began it says nothing of them; of versions in turns nobody can tell whose stack it was.
    """
    return bool(trials.incomplete) and not trials.session and len(trials.loads) >= len(trials.spec.loads)


def has_lost_motion(trials: TrialSet) -> bool:
    """Whether that was in a motion that is no trial, such as the way home."""
    last = trials.trials[-1] if trials.trials else None
    return arm_ended(trials) and (last is None or last.outcome is not OutcomeClass.STACK_DIED)


def with_lost_motion(broken: Sequence[Answer], trials: TrialSet) -> list[Answer]:
    """Whether each trial is broken, when the way home belongs to it: where that was lost, the last one is.

    Args:
        broken: what each trial says by itself. A start that was lost before its first has one, which is broken.
    """
    answers = list(broken)
    if has_lost_motion(trials):
        answers[-1:] = [True]
    return answers
