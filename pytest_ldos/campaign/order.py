"""Order of the blocks of two interleaved versions, so that drift in time does not look like a difference.

Blocks come in pairs, one of each version, with the same trials. Which of them goes first follows the
Thue–Morse sequence: ABBA BAAB BAAB ABBA. A linear drift cancels over every two pairs, a quadratic
one over every four. After any number of pairs, both versions have had equally many trials.

Reference: J.-P. Allouche, J. Shallit, "The Ubiquitous Prouhet–Thue–Morse Sequence", 1999.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import ceil


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


def first_blocks(trials: int, *, size: int) -> list[Block]:
    """Blocks of up to `size` trials for the given number of trials of each version: whole ABBA groups.

    A single trial gives a single pair.
    """
    groups = min(ceil(trials / (2 * size)), trials // 2)
    pairs = max(1, 2 * groups)
    bounds = [trials * pair // pairs for pair in range(pairs + 1)]
    return [block for pair in range(pairs) for block in _pair(pair, range(bounds[pair], bounds[pair + 1]))]


def next_pair(last: Block, *, size: int, limit: int) -> list[Block]:
    """The pair that follows a block, of up to `size` trials; empty if both versions have `limit` trials."""
    trials = range(last.trials.stop, min(last.trials.stop + size, limit))
    return _pair(last.number // 2 + 1, trials) if trials else []


def _pair(pair: int, trials: range) -> list[Block]:
    order = (Role.BASE, Role.HEAD) if pair.bit_count() % 2 == 0 else (Role.HEAD, Role.BASE)
    return [Block(2 * pair + place, role, trials) for place, role in enumerate(order)]
