"""Blocks of trials of one version, and the order of two interleaved versions' blocks.

Blocks come in pairs, one of each version, with the same trials, so that drift does not look like a difference. The
order within pairs follows the Thue–Morse sequence: ABBA BAAB BAAB ABBA. A linear drift cancels over every two pairs, a
quadratic one over every four; with an odd number of pairs, one pair's share of a linear drift remains. After any number
of pairs, both versions have equally many trials, and of planning equally many of each problem.

Reference: J.-P. Allouche, J. Shallit, "The Ubiquitous Prouhet–Thue–Morse Sequence", 1999.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import ceil
from typing import Final

_LOOKS: Final = 6


class Role(StrEnum):
    BASE = "base"
    HEAD = "head"


@dataclass(frozen=True)
class Block:
    """One stack start of one version, with trials; starts are numbered over both versions, two for each pair."""

    number: int
    role: Role
    trials: range


def usual_size(trials: int, problems: int = 1) -> int:
    """Default number of trials of a block: five pairs for ten trials of each version, 15 for thirty.

    Because starts differ, more starts with fewer trials have more power in the same time; a single trial is not worth a
    start. A plan is much shorter than a start: a block plans all problems, unless fewer than five pairs remain.
    """
    return _size(trials, problems, smallest=2, most_blocks=15, fewest_of_suite=5)


def usual_size_alone(trials: int, problems: int = 1) -> int:
    """Default number of trials of a block of one version: three blocks for ten trials, six for thirty.

    A comparison with a stored baseline needs three starts; more add little compared with the variance between runs.
    """
    return _size(trials, problems, smallest=4, most_blocks=6, fewest_of_suite=3)


def _size(trials: int, problems: int, *, smallest: int, most_blocks: int, fewest_of_suite: int) -> int:
    usual = max(smallest, ceil(trials / most_blocks))
    return min(ceil(usual / problems) * problems, max(usual, ceil(trials / fewest_of_suite)))


def blocks_alone(trials: int, *, size: int | None = None, problems: int = 1) -> list[Block]:
    """Blocks of at most `size` trials of head alone, by default `usual_size_alone`."""
    count = ceil(trials / (size or usual_size_alone(trials, problems)))
    return [Block(number, Role.HEAD, part) for number, part in enumerate(_divided(trials, count))]


def first_blocks(trials: int, *, size: int | None = None, problems: int = 1) -> list[Block]:
    """Blocks for the given number of trials of each version: at least two pairs, except for a single trial.

    A block has at most `size` trials, by default `usual_size`.
    """
    pairs = max(min(trials, 2), ceil(trials / (size or usual_size(trials, problems))))
    return [block for pair, part in enumerate(_divided(trials, pairs)) for block in _pair(pair, part)]


def next_pair(last: Block, *, limit: int, size: int | None = None, problems: int = 1) -> list[Block]:
    """The pair that follows a block; empty if both versions have `limit` trials."""
    trials = range(last.trials.stop, min(last.trials.stop + (size or usual_size(limit, problems)), limit))
    return _pair(last.number // 2 + 1, trials) if trials else []


def next_pairs(last: Block, *, limit: int, size: int | None = None, problems: int = 1) -> list[Block]:
    """The pairs between a block and the next look: a sixth of `limit` trials, or one pair of a requested size."""
    blocks = next_pair(last, limit=limit, size=size, problems=problems)
    wanted = 0 if size is not None else ceil(limit / _LOOKS)
    while blocks and blocks[-1].trials.stop < min(last.trials.stop + wanted, limit):
        blocks += next_pair(blocks[-1], limit=limit, size=size, problems=problems)
    return blocks


def _divided(trials: int, parts: int) -> list[range]:
    """Indices of trials in parts of nearly equal size."""
    return [range(*bounds) for bounds in pairwise(trials * part // parts for part in range(parts + 1))]


def _pair(pair: int, trials: range) -> list[Block]:
    order = (Role.BASE, Role.HEAD) if pair.bit_count() % 2 == 0 else (Role.HEAD, Role.BASE)
    return [Block(2 * pair + place, role, trials) for place, role in enumerate(order)]
