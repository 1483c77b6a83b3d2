"""Waterfalls: the parts of one passage, each where the one before ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import polars as pl

_MOST_PARTS: Final = 40


@dataclass(frozen=True)
class Part:
    """Part of a passage.

    Attributes:
        name: ``KIND: SUBJECT``.
        note: beside its duration, such as a change.
        is_marked: True for the part to look at.
    """

    name: str
    duration_ns: int
    note: str = ""
    is_marked: bool = False


@dataclass(frozen=True)
class Waterfall:
    """The parts of a passage in their order; they sum to its latency.

    Attributes:
        whole_ns: latency of the whole where the parts do not sum to it, because each is a median of many passages.
    """

    title: str
    parts: tuple[Part, ...]
    whole_ns: int | None = None

    @property
    def duration_ns(self) -> int:
        """Sum of the parts."""
        return sum(part.duration_ns for part in self.parts)


def waterfall_of(title: str, segments: pl.DataFrame, passage: int) -> Waterfall:
    """The waterfall of one passage of `break_down`; equal parts that follow each other are one."""
    rows = segments.filter(pl.col("passage") == passage).sort("position")
    parts: list[Part] = []
    for kind, subject, duration_ns in rows.select("kind", "subject", "duration_ns").iter_rows():
        name = f"{kind}: {subject}" if subject else str(kind)
        before = parts.pop().duration_ns if parts and parts[-1].name == name else 0
        parts.append(Part(name, before + duration_ns))
    return Waterfall(title, _shortened(parts))


def _shortened(parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts, those that took least as one at their end where there are too many."""
    if len(parts) <= _MOST_PARTS:
        return tuple(parts)
    limit = sorted(part.duration_ns for part in parts)[-_MOST_PARTS]
    kept = [part for part in parts if part.duration_ns >= limit][:_MOST_PARTS]
    rest = sum(part.duration_ns for part in parts) - sum(part.duration_ns for part in kept)
    return (*kept, Part(f"{len(parts) - len(kept)} shorter parts", rest))


def mark_growth(base: Waterfall, head: Waterfall) -> tuple[Waterfall, Waterfall]:
    """Both waterfalls, with the part marked that grew most; unmarked if none grew."""
    one, other = sums_of(base), sums_of(head)
    grown = {name: duration_ns - one.get(name, 0) for name, duration_ns in other.items()}
    most = max(grown, key=lambda name: grown[name], default="")
    marked = most if most and grown[most] > 0 else ""
    return mark(base, marked), mark(head, marked)


def mark(shown: Waterfall, name: str) -> Waterfall:
    """The waterfall with the parts of a name marked."""
    return replace(shown, parts=tuple(replace(part, is_marked=part.name == name) for part in shown.parts))


def sums_of(shown: Waterfall) -> dict[str, int]:
    """Durations by name; parts of the same name are summed."""
    sums: dict[str, int] = {}
    for part in shown.parts:
        sums[part.name] = sums.get(part.name, 0) + part.duration_ns
    return sums
