"""Planted failures of goals.

A goal's failure depends only on its seed and the rate: it is the same in every run, and a goal that fails at one
rate fails at every higher one.
"""

from __future__ import annotations

import random
from enum import StrEnum
from typing import Final

from pytest_ldos.robot.stack.client_protocol import TrialTag

_STREAM: Final = "planted failure"


class PlantedFailure(StrEnum):
    """The part that makes a goal fail."""

    PLANNER = "planner"
    CONTROLLER = "controller"


def plant_failure(rate: float, *, seed: int | None, trial: TrialTag | None) -> PlantedFailure | None:
    """Returns the way in which a goal fails; ``None`` if it does not.

    Half of the failures are the planner's and half the controller's.

    Args:
        rate: share of the measured goals that fail.
        seed: seed of the trial; ``None`` for a random one.
        trial: ``None`` for goals that are not measured, such as the return home: they never fail.
    """
    if trial is None or rate <= 0:
        return None
    chance = random.SystemRandom() if seed is None else random.Random(f"{_STREAM} {seed}")  # noqa: S311 - no secret
    fails, by_planner = chance.random() < rate, chance.random() < 0.5
    if not fails:
        return None
    return PlantedFailure.PLANNER if by_planner else PlantedFailure.CONTROLLER
