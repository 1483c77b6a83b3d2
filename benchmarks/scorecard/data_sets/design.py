"""Default order of the trials of two versions: interleaved with additions, or sequential."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.scorecard.sample import Indices
from pytest_ldos.campaign.order import Block, Role, blocks_alone, first_blocks, next_pairs
from pytest_ldos.measure.trial.record import Look

FIRST: Final = 10
"""Trials of each version at the first look."""

TRIALS: Final = 30
"""Trials of each version at the last look of interleaved versions, as `ldos measure` allows."""

HEAD_LOOKS: Final = (10, 16, 22, 28, 30)
IN_TURNS: Final = tuple(Look(count, count) for count in HEAD_LOOKS)
"""Looks at interleaved versions; those of `turns`."""

ONCE: Final = (Look(FIRST, FIRST),)
"""The look at a version that is compared with a stored one."""


@dataclass(frozen=True)
class Starts:
    """The stack starts of one version.

    Attributes:
        numbers: of the starts, over both versions, in order of time.
        sizes: number of trials of each.
    """

    numbers: Indices
    sizes: Indices

    @property
    def blocks(self) -> Indices:
        """Start of each trial."""
        return np.repeat(self.numbers, self.sizes)

    def kept(self, largest: int) -> Indices:
        """Places of the trials among `largest` of each start."""
        return np.flatnonzero(np.arange(largest) < self.sizes[:, None])


def turns() -> tuple[Starts, Starts]:
    """Starts of base and of head in an interleaved session that goes on to the last look."""
    blocks = first_blocks(FIRST)
    while pairs := next_pairs(blocks[-1], limit=TRIALS):
        blocks += pairs
    base, head = ([block for block in blocks if block.role is role] for role in (Role.BASE, Role.HEAD))
    return _starts(base), _starts(head)


def one_after_another(gap: int) -> tuple[Starts, Starts]:
    """Starts of base and of head, with so many others between them."""
    base = _starts(blocks_alone(FIRST))
    return base, Starts(base.numbers + base.numbers.size + gap, base.sizes)


def _starts(blocks: Sequence[Block]) -> Starts:
    return Starts(np.array([each.number for each in blocks]), np.array([len(each.trials) for each in blocks]))
