"""Merges stacks with common outer frames into a tree, as shown by a flame graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pytest_ldos.record.profiles.folded import FoldedStacks, Stack


@dataclass(eq=False)
class Frame:
    """A function in the context of its callers.

    Attributes:
        path: from the outermost frame to this one; empty for the root.
        counts: samples in it and in the functions it called, one number per profile.
        own: samples in itself.
    """

    path: Stack
    counts: list[int]
    own: list[int]
    children: dict[str, Frame] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.path[-1] if self.path else "all"

    @property
    def depth(self) -> int:
        """0 for the root."""
        return len(self.path)

    def walk(self) -> Iterator[Frame]:
        """This frame and all below it, each before the functions it called, children sorted by name."""
        waiting = [self]
        while waiting:
            frame = waiting.pop()
            yield frame
            waiting.extend(frame.children[name] for name in sorted(frame.children, reverse=True))


def build_tree(profiles: Iterable[FoldedStacks]) -> Frame:
    """Builds one tree of several profiles, so that frames of the same path can be compared."""
    given = list(profiles)
    whole = Frame((), [0] * len(given), [0] * len(given))
    for number, profile in enumerate(given):
        for stack, count in profile.counts.items():
            _add(whole, stack, count, number)
    return whole


def _add(whole: Frame, stack: Stack, count: int, number: int) -> None:
    frame = whole
    frame.counts[number] += count
    for depth, name in enumerate(stack, 1):
        found = frame.children.get(name)
        if found is None:
            found = Frame(stack[:depth], [0] * len(whole.counts), [0] * len(whole.counts))
            frame.children[name] = found
        found.counts[number] += count
        frame = found
    frame.own[number] += count
