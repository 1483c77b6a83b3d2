"""How the trials of two versions lie in time: interleaved, or one version after the other."""

from __future__ import annotations

from typing import Final

import numpy as np

from benchmarks.scorecard.sample import Indices
from pytest_ldos.campaign.order import Role, first_blocks
from pytest_ldos.measure.trial.record import Look

TRIALS: Final = 30
PER_START: Final = 5
HEAD_LOOKS: Final = (10, 15, 20, 25, 30)

AFTER_BASE: Final = tuple(Look(head, TRIALS) for head in HEAD_LOOKS)
"""The base is there; only the head grows."""

IN_TURNS: Final = tuple(Look(count, count) for count in HEAD_LOOKS)
"""Both grow."""


def turns(per_start: int = PER_START) -> tuple[Indices, Indices]:
    """Positions of the base's and the head's starts in a session, in the order of the gate's own sessions."""
    blocks = first_blocks(TRIALS, size=per_start)
    base, head = (np.array([block.number for block in blocks if block.role is role]) for role in (Role.BASE, Role.HEAD))
    return base, head
