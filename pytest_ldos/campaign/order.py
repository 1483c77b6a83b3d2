"""Order of the blocks of two interleaved versions, so that drift in time does not look like a difference.

Blocks come in pairs, one of each version, with the same trials. Which of them goes first follows the
Thue–Morse sequence: ABBA BAAB BAAB ABBA. A linear drift cancels over every two pairs, a quadratic
one over every four; of an odd number of pairs, one pair's share of a linear drift is left. After any number of
pairs, both versions have had equally many trials.

Reference: J.-P. Allouche, J. Shallit, "The Ubiquitous Prouhet–Thue–Morse Sequence", 1999.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from typing import Final

_MOST_PAIRS: Final = 6
_SMALLEST_BLOCK: Final = 2


class Role(StrEnum):
    """Role of a version in a comparison."""

    BASE = "base"
    HEAD = "head"


@dataclass(frozen=True)
class Block:
    """One stack start of one version, with trials.

    Attributes:
        number: number of the start, from 0, over both versions; ``number // 2`` is its pair.
        trials: their indices.
    """

    number: int
    role: Role
    trials: range


def usual_size(trials: int) -> int:
    """Trials of a block, unless another size is requested: five or six pairs for ten trials of each version or more.

    Starts differ by themselves, so more starts with fewer trials find a change more often; a start for one
    trial costs more than it tells.
    """
    return max(_SMALLEST_BLOCK, ceil(trials / _MOST_PAIRS))


def first_blocks(trials: int, *, size: int | None = None) -> list[Block]:
    """Blocks for the given number of trials of each version: two pairs or more, except for a single trial.

    Args:
        size: largest number of trials of a block, by default `usual_size`.
    """
    pairs = max(min(trials, 2), ceil(trials / (size or usual_size(trials))))
    bounds = [trials * pair // pairs for pair in range(pairs + 1)]
    return [block for pair in range(pairs) for block in _pair(pair, range(bounds[pair], bounds[pair + 1]))]


def next_pair(last: Block, *, limit: int, size: int | None = None) -> list[Block]:
    """The pair that follows a block; empty if both versions have `limit` trials.

    Args:
        size: largest number of trials of a block, by default the `usual_size` for `limit` trials.
    """
    trials = range(last.trials.stop, min(last.trials.stop + (size or usual_size(limit)), limit))
    return _pair(last.number // 2 + 1, trials) if trials else []


def _pair(pair: int, trials: range) -> list[Block]:
    order = (Role.BASE, Role.HEAD) if pair.bit_count() % 2 == 0 else (Role.HEAD, Role.BASE)
    return [Block(2 * pair + place, role, trials) for place, role in enumerate(order)]
